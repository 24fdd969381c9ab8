"""Controllers: what people write is made true, kind by kind. Decisions are pure scripts; one shell runs them all."""
