// SPDX-License-Identifier: Apache-2.0

// Package purity holds a test that reads the library's own sources and fails
// when a reconcile package could see anything but its input.
package purity
