// SPDX-License-Identifier: Apache-2.0

//go:build race

package registries_test

// With the race detector memory is another, and large texts take minutes.
func init() { raced = true }
