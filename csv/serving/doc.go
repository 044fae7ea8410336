// SPDX-License-Identifier: Apache-2.0

// Package serving contains the observed objects of the webhooks and APIs that an operator serves. They are Services,
// certificates, permissions, and the configurations through which the API server calls the operator. Package csv uses
// them.
package serving
