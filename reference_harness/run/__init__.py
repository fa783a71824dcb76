"""One run: settings, tasks, progress, run record and submission."""
