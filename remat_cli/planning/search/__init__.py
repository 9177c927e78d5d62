"""From a request to an answer: candidates are proposed, repaired by the target, and borne witness to."""
