// SPDX-License-Identifier: Apache-2.0

package group

import (
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// builtIn are the groups of Kubernetes with a dot in their name that an API server serves itself, and OLM's.
var builtIn = sets.New(
	"admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "authentication.k8s.io", "authorization.k8s.io",
	"certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io", "flowcontrol.apiserver.k8s.io", "internal.apiserver.k8s.io",
	"networking.k8s.io", "node.k8s.io", "rbac.authorization.k8s.io", "resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io",
	"storagemigration.k8s.io", v1alpha1.GroupName,
)

// IsBuiltIn reports whether a group of APIs is one of Kubernetes or OLM's, so that no operator may add to it: clients
// would follow a version of its own instead of theirs. Groups of Kubernetes that operators implement, such as
// metrics.k8s.io, are none.
func IsBuiltIn(name string) bool { return !strings.Contains(name, ".") || builtIn.Has(name) }
