"""Renderers: one module per API generation, each turning a plan into objects and objects back into a plan."""
