"""The rules: one file each; :mod:`padfix.rules.registry` lists them in order."""
