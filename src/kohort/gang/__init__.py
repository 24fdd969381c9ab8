"""From workloads to trees of groups (`compile`) and from trees to API objects (`render`). Pure."""
