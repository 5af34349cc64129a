"""Pure arithmetic of windows and sampling: numbers in, numbers out; imports nothing of padfix."""
