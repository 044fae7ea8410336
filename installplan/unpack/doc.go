// SPDX-License-Identifier: Apache-2.0

// Package unpack unpacks bundle images into ConfigMaps.
//
// A resolution may know only the image of a bundle. Package create then returns a lookup instead of a plan. [Bundle]
// processes the lookup in several calls: it creates a ConfigMap, the permission to write it, and a Job that writes it.
// Finally it returns the bundle. The steps of the plan reference the ConfigMap and the digest of its content. So only
// the content that was planned, and perhaps approved, is installed.
//
//	lookup --> ConfigMap --> Role, ServiceAccount, RoleBinding --> Job --+--> bundle
//	                                                               ^     |
//	                                                               +-----+ failed, after the retry interval
package unpack
