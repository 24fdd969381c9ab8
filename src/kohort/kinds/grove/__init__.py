"""PodCliqueSet and what Grove makes of it."""
