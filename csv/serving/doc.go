// SPDX-License-Identifier: Apache-2.0

// Package serving describes what an operator needs to serve webhooks and APIs. It defines requests for serving
// certificates and their results, checks whether a certificate is still valid, and contains the observed objects of the
// webhooks and APIs. Creating a certificate needs randomness, so an issuer outside this package does it. Package csv
// uses the types of this package in its Input and Outcome.
package serving
