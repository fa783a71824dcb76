"""`geneb-ci extractor`: hold an extractor against the properties that scores rest on."""

from geneb_ci.cli.harness import handed_over

command = handed_over("extractor", "Check an extractor, or list those that are built in.")
