"""StatefulSets: pods with a name, a place in an order, and volume claims that outlive them."""
