// SPDX-License-Identifier: Apache-2.0

// Package gen holds rapid generators for property tests of reconcilers: values
// of any API type, filled at random from a small vocabulary so that names,
// UIDs and times meet, and steps that a random world takes.
//
// Importing rapid registers its flags (-rapid.checks and so on), so only tests
// should import this package.
package gen
