"""Load a .pte file and run its methods: files are checked first, then native code is loaded."""
