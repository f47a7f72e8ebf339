// Exists, so that the others can wrongly include it.
