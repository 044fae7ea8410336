// SPDX-License-Identifier: Apache-2.0

// Package browser has the tests that open the HTML of the command in Chromium, which they need: install-chromium beside
// it installs it on Debian.
//
//	internal/browser/install-chromium
//	go test -tags chromium ./internal/browser
//
// OLMCORE_SCREENSHOTS names a folder that gets the pictures.
package browser
