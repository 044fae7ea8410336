// SPDX-License-Identifier: Apache-2.0

package group

import "github.com/olmcore/olm/internal/builtin"

// IsBuiltIn reports whether an API group belongs to Kubernetes or OLM, so that no operator may add versions to it.
// Otherwise clients could use the operator's version instead. It returns false for Kubernetes API groups that operators
// implement, such as metrics.k8s.io.
func IsBuiltIn(name string) bool { return builtin.IsServed(name) }
