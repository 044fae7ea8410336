// SPDX-License-Identifier: Apache-2.0

// Package serving holds what is observed of the webhooks and APIs that the operator of a ClusterServiceVersion serves:
// their Services, certificates, permissions and the configurations through which the API server calls them. Package csv
// decides about them.
package serving
