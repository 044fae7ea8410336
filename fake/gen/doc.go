// SPDX-License-Identifier: Apache-2.0

// Package gen holds a rapid generator for property tests of reconcilers: [Value] fills any API type at random from a
// small [Vocabulary], so that names, UIDs and times meet.
//
// Importing rapid registers its flags (-rapid.checks and so on), so only tests should import this package.
package gen
