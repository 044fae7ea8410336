// SPDX-License-Identifier: Apache-2.0

package group

import "github.com/olmcore/olm/internal/builtin"

// IsBuiltIn reports whether an API group belongs to Kubernetes or OLM. An operator must not add a version to such a
// group, because clients could use that version instead of the built-in one. IsBuiltIn returns false for Kubernetes API
// groups that operators implement, such as metrics.k8s.io.
func IsBuiltIn(name string) bool { return builtin.IsServed(name) }
