// SPDX-License-Identifier: Apache-2.0

// Package builtin names the API groups that no operator may add to.
package builtin

import (
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// served contains the groups with a dot in their name that an API server serves itself, and the group of OLM.
var served = sets.New(
	"admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "authentication.k8s.io", "authorization.k8s.io",
	"certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io", "flowcontrol.apiserver.k8s.io",
	"internal.apiserver.k8s.io",
	"networking.k8s.io", "node.k8s.io", "rbac.authorization.k8s.io", "resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io",
	"storagemigration.k8s.io", v1alpha1.GroupName,
)

// aggregated contains the groups that extension API servers serve by convention.
var aggregated = sets.New("metrics.k8s.io", "custom.metrics.k8s.io", "external.metrics.k8s.io", "packages.operators.coreos.com")

// IsServed reports whether an API group is one of Kubernetes or OLM. Clients would follow a version that an operator
// added to such a group instead of the versions of Kubernetes. Groups of Kubernetes that operators implement, such as
// metrics.k8s.io, are not among them.
func IsServed(group string) bool { return !strings.Contains(group, ".") || served.Has(group) }

// IsAggregated reports whether an extension API server serves an API group: operators add an APIService to it, and no
// CustomResourceDefinition.
func IsAggregated(group string) bool { return aggregated.Has(group) }
