"""Rules about which files a pull request changes; they read no file."""
