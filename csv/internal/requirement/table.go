// SPDX-License-Identifier: Apache-2.0

// Package requirement judges what a ClusterServiceVersion needs before its operator is installed and while it runs. Its
// table has one row for each sort of thing that can be needed: how it is read, judged, reported and made again, and
// whose change matters.
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

// Requirement is one row of the table: a sort of thing that a CSV can need. Of the optional functions Gather, Unread and
// Concerns are nil for what needs no objects.
type Requirement struct {
	// Name is for tests and documentation.
	Name string
	// Gather reads what Judge looks at into an Observed.
	Gather func(*read.Reads, *Observed)
	// Unread names a list that Judge looks at and that was not read; empty when all were.
	Unread func(*Observed) string
	// Judge returns the entries of status.requirementStatus in their order, met or not; none when the CSV needs no such
	// thing.
	Judge func(*Observed) []v1alpha1.RequirementStatus
	// Concerns returns the keys of the CSVs for which a change of an object matters, as csv.Affected does.
	Concerns func(olmcore.Object) []types.NamespacedName
	// TakenBy reports whether an unmet entry is so because the upgrade to a successor has begun. Nil: that cannot be.
	TakenBy func(*Observed, *owned.CSV, v1alpha1.RequirementStatus) bool
	// Heal returns the objects that an InstallPlan made for the entries and that do not exist. Nil: no plan makes any.
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

// Observed is what the requirements of a CSV are judged by. The lists are those of csv.Input.
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

// Report is what a table says about a CSV: the entries of each row.
type Report [][]v1alpha1.RequirementStatus

// Entries returns status.requirementStatus.
func (r Report) Entries() []v1alpha1.RequirementStatus { return slices.Concat(r...) }

// Met reports whether all is met.
func (r Report) Met() bool { return !slices.ContainsFunc(r, isAnyUnmet) }

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

// Unread names a list that the requirements need and that was not read; empty when all were.
func (t Table) Unread(o *Observed) string {
	for _, row := range t {
		if row.Unread == nil {
			continue
		}
		if list := row.Unread(o); list != "" && len(row.Judge(o)) > 0 {
			return list
		}
	}
	return ""
}

// Judge evaluates everything that the CSV needs.
func (t Table) Judge(o *Observed) Report {
	report := make(Report, len(t))
	for i, row := range t {
		report[i] = row.Judge(o)
	}
	return report
}

// TakenBy reports whether all that is unmet in its report is so because the upgrade to a successor has begun.
func (t Table) TakenBy(o *Observed, report Report, successor *owned.CSV) bool {
	for i, row := range t {
		for _, r := range report[i] {
			if isUnmet(r) && (row.TakenBy == nil || !row.TakenBy(o, successor, r)) {
				return false
			}
		}
	}
	return true
}

// Heal returns what an InstallPlan made for what is unmet in its report and does not exist any more.
func (t Table) Heal(o *Observed, report Report) []olmcore.Object {
	var objects []olmcore.Object
	for i, row := range t {
		if row.Heal != nil && isAnyUnmet(report[i]) {
			objects = append(objects, row.Heal(o)...)
		}
	}
	return objects
}

// Concerned returns the keys of the CSVs whose requirements the change of an object concerns.
func (t Table) Concerned(o olmcore.Object) []types.NamespacedName {
	var keys []types.NamespacedName
	for _, row := range t {
		if row.Concerns != nil {
			keys = append(keys, row.Concerns(o)...)
		}
	}
	return keys
}

// The states of an entry of the report, and two for which the API types have no constants.
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

func isAnyUnmet(entries []v1alpha1.RequirementStatus) bool {
	return slices.ContainsFunc(entries, isUnmet)
}

func byName(a, b v1alpha1.RequirementStatus) int { return strings.Compare(a.Name, b.Name) }

// unless names a list that was not read.
func unless(complete bool, list string) string {
	if complete {
		return ""
	}
	return list
}

// everyCSV is the key for every CSV, see olmcore.ExpandKeys.
var everyCSV = []types.NamespacedName{{}}

// concernEvery is the Concerns of a row that judges objects of this kind, whichever CSV needs them.
func concernEvery[T olmcore.Object](o olmcore.Object) []types.NamespacedName {
	if _, ok := o.(T); ok {
		return everyCSV
	}
	return nil
}
