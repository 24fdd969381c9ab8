"""Controllers: what people write is made true, kind by kind. Reconciles are pure generators, run by one runtime."""
