"""Make and check the files of a release, for `make release`; here, because learners and instructors do not need it."""
