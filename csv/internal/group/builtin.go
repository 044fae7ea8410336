// SPDX-License-Identifier: Apache-2.0

package group

import "github.com/olmcore/olm/internal/builtin"

// IsBuiltIn reports whether a group of APIs is one of Kubernetes or OLM's, so that no operator may add to it: clients
// would follow a version of its own instead of theirs. Groups of Kubernetes that operators implement, such as
// metrics.k8s.io, are none.
func IsBuiltIn(name string) bool { return builtin.IsServed(name) }
