"""The rules, pure: standard library only, no I/O, no clock, no ids minted."""
