// SPDX-License-Identifier: Apache-2.0

// Package requirement judges what a ClusterServiceVersion needs before its operator is
// installed and while it runs. Its table has one row for each sort of thing that can
// be needed: how it is read, judged, reported and made again, and whose change matters.
package requirement

import (
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/csv/internal/read"
	"github.com/olmcore/olm/olmcore"
)

// Requirement is one row of the table: a sort of thing that a CSV can need.
type Requirement struct {
	// Name is for tests and documentation.
	Name string
	// Gather reads what Judge looks at into an Observed. Nil: it needs no objects.
	Gather func(*read.Reads, *Observed)
	// Unread names the list of objects that a CSV which needs such a thing is judged
	// by and that was not read; empty when all were. Nil: it needs no objects.
	Unread func(*Observed) string
	// Judge returns the entries of status.requirementStatus in their order, met or
	// not; none when the CSV needs no such thing.
	Judge func(*Observed) []v1alpha1.RequirementStatus
	// Concerns returns the keys of the CSVs for which a change of an object matters,
	// as csv.Affected does. Nil: it needs no objects.
	Concerns func(olmcore.Object) []types.NamespacedName
	// TakenBy reports whether an entry is unmet because the upgrade to a successor has
	// begun. Nil: that cannot be.
	TakenBy func(*Observed, *owned.CSV, v1alpha1.RequirementStatus) bool
	// Heal returns the objects that an InstallPlan made for unmet entries, for those
	// that do not exist to be made again. Nil: no plan makes any.
	Heal func(*Observed) []olmcore.Object
}

// Table is a list of rows, in the order of the report.
type Table []Requirement

// All is the table: a new requirement is one row more.
var All = Table{
	kubernetesVersion,
	customResourceDefinitions,
	requiredAPIServices,
	ownedAPIServices,
	nativeAPIs,
	serviceAccounts,
}

// Observed is what the requirements of a CSV are judged by. The lists are those of
// csv.Input.
type Observed struct {
	CSV                       *owned.CSV
	Neighbours                []*owned.CSV
	KubernetesVersion         string
	ServedAPIs                olmcore.Observed[schema.GroupVersionKind]
	CustomResourceDefinitions olmcore.Observed[*apiextensionsv1.CustomResourceDefinition]
	APIServices               olmcore.Observed[*apiregistrationv1.APIService]
	ServiceAccounts           olmcore.Observed[*corev1.ServiceAccount]
	Roles                     olmcore.Observed[*rbacv1.Role]
	RoleBindings              olmcore.Observed[*rbacv1.RoleBinding]
	ClusterRoles              olmcore.Observed[*rbacv1.ClusterRole]
	ClusterRoleBindings       olmcore.Observed[*rbacv1.ClusterRoleBinding]
}

// Gather reads the lists of an Observed with this CSV.
func (t Table) Gather(r *read.Reads, c *owned.CSV) Observed {
	o := Observed{CSV: c}
	for _, row := range t {
		if row.Gather != nil {
			row.Gather(r, &o)
		}
	}
	return o
}

// Unread names a list that the requirements need and that was not read; empty when all
// were.
func (t Table) Unread(o *Observed) string {
	for _, row := range t {
		if row.Unread == nil {
			continue
		}
		if list := row.Unread(o); list != "" {
			return list
		}
	}
	return ""
}

// Judge evaluates everything that the CSV needs, met or not, in a fixed order, and
// reports whether all is met.
func (t Table) Judge(o *Observed) (report []v1alpha1.RequirementStatus, met bool) {
	for _, row := range t {
		report = append(report, row.Judge(o)...)
	}
	return report, AllMet(report)
}

// AllMet reports whether a report shows nothing unmet.
func AllMet(report []v1alpha1.RequirementStatus) bool { return !slices.ContainsFunc(report, isUnmet) }

// TakenBy reports whether all that is unmet is so because the upgrade to a successor
// has begun.
func (t Table) TakenBy(o *Observed, successor *owned.CSV) bool {
	for _, row := range t {
		for _, r := range row.Judge(o) {
			if isUnmet(r) && (row.TakenBy == nil || !row.TakenBy(o, successor, r)) {
				return false
			}
		}
	}
	return true
}

// Heal returns what an InstallPlan made for the unmet requirements and does not exist
// any more.
func (t Table) Heal(o *Observed) []olmcore.Object {
	var objects []olmcore.Object
	for _, row := range t {
		if row.Heal != nil && slices.ContainsFunc(row.Judge(o), isUnmet) {
			objects = append(objects, row.Heal(o)...)
		}
	}
	return objects
}

// Concerned returns the keys of the CSVs whose requirements the change of an object
// concerns.
func (t Table) Concerned(o olmcore.Object) []types.NamespacedName {
	var keys []types.NamespacedName
	for _, row := range t {
		if row.Concerns != nil {
			keys = append(keys, row.Concerns(o)...)
		}
	}
	return keys
}

// The states of an entry of the report, and two for which the API types have no
// constants.
const (
	present      = v1alpha1.RequirementStatusReasonPresent
	notPresent   = v1alpha1.RequirementStatusReasonNotPresent
	notSatisfied = v1alpha1.RequirementStatusReasonPresentNotSatisfied
	notAvailable = v1alpha1.RequirementStatusReasonNotAvailable

	deploymentFound    v1alpha1.StatusReason = "DeploymentFound"
	deploymentNotFound v1alpha1.StatusReason = "DeploymentNotFound"
)

func isUnmet(r v1alpha1.RequirementStatus) bool {
	return r.Status != present && r.Status != deploymentFound
}

func byName(a, b v1alpha1.RequirementStatus) int { return strings.Compare(a.Name, b.Name) }

// unless names a list when it is needed and was not read.
func unless(complete, needed bool, list string) string {
	if complete || !needed {
		return ""
	}
	return list
}

// everyCSV is the key for every CSV, see olmcore.ExpandKeys.
var everyCSV = []types.NamespacedName{{}}
