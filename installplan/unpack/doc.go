// SPDX-License-Identifier: Apache-2.0

// Package unpack takes the content of bundle images into the cluster.
//
// A resolution may know a bundle by its image alone. Package create then asks for a lookup and makes no plan. [Bundle]
// answers it round by round: a ConfigMap, the permission to write it, a Job that does, and in the end the bundle. The
// steps of the plan refer to the ConfigMap and to the digest of what it held, so that nothing else than what was
// planned, and perhaps approved, is installed.
//
//	lookup --> ConfigMap --> Role, ServiceAccount, RoleBinding --> Job --+--> bundle
//	                                                               ^     |
//	                                                               +-----+ failed, after the retry interval
package unpack
