// SPDX-License-Identifier: Apache-2.0

// Package repository holds tests about the repository itself: its documents name tests and files that exist, its
// folders, files, functions and receivers stay of a size that a reader can hold, each option has a user, and comments
// use the words of the field.
package repository
