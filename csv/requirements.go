// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv/internal/read"
	"github.com/olmcore/olm/internal/printable"
	"github.com/olmcore/olm/olmcore"
)

// requirement is one row of the table of what a CSV can need before its operator is installed and while it runs. The
// functions gather, unread and concerns are nil for what needs no objects.
type requirement struct {
	name string // for tests and documentation
	// gather reads the lists that judge looks at.
	gather func(*read.Reads, *Input)
	// unread names a list that judge looks at and that was not read; none when all were.
	unread func(*Input) []string
	// judge returns the entries of status.requirementStatus, met or not; none when the CSV needs no such thing.
	judge func(*Input) []v1alpha1.RequirementStatus
	// concerns returns the keys of the CSVs for which a change of an object matters, as Affected does.
	concerns func(olmcore.Object) []types.NamespacedName
	// takenBy reports whether an unmet entry is so because the upgrade to a successor has begun. Nil: that cannot be.
	takenBy func(in *Input, successor *version, r v1alpha1.RequirementStatus) bool
	// heal returns the objects that an InstallPlan made for the entries and that do not exist. Nil: no plan makes any.
	heal func(*Input) []olmcore.Object
}

// table is a list of rows, in the order of the report.
type table []requirement

// requirements is the table: a new requirement is one row more.
var requirements = table{
	kubernetesVersion,
	customResourceDefinitions,
	requiredAPIServices,
	ownedAPIServices,
	nativeAPIs,
	serviceAccounts,
}

// report is what a table says about a CSV: the entries of each row.
type report [][]v1alpha1.RequirementStatus

// entries are status.requirementStatus.
func (r report) entries() []v1alpha1.RequirementStatus { return slices.Concat(r...) }

// isMet reports whether all requirements are met.
func (r report) isMet() bool { return !slices.ContainsFunc(r, isAnyUnmet) }

func (t table) gather(r *read.Reads, in *Input) {
	for _, row := range t {
		if row.gather != nil {
			row.gather(r, in)
		}
	}
}

// unread names a list that the requirements need and that was not read; empty when all were.
func (t table) unread(in *Input) string {
	for _, row := range t {
		if row.unread == nil {
			continue
		}
		if lists := row.unread(in); len(lists) > 0 && len(row.judge(in)) > 0 {
			return lists[0]
		}
	}
	return ""
}

func (t table) judge(in *Input) report {
	r := make(report, len(t))
	for i, row := range t {
		r[i] = printedRequirements(row.judge(in))
	}
	return r
}

// printedRequirements returns entries in whose messages the characters that people do not see are escaped.
func printedRequirements(entries []v1alpha1.RequirementStatus) []v1alpha1.RequirementStatus {
	printed := slices.Clone(entries)
	for i := range printed {
		r := &printed[i]
		r.Message = printable.Text(r.Message)
		r.Dependents = slices.Clone(r.Dependents)
		for j := range r.Dependents {
			r.Dependents[j].Message = printable.Text(r.Dependents[j].Message)
		}
	}
	return printed
}

// takenBy reports whether all that is unmet in its report is so because the upgrade to a successor has begun.
func (t table) takenBy(in *Input, report report, successor *version) bool {
	for i, row := range t {
		for _, r := range report[i] {
			if isUnmet(r) && (row.takenBy == nil || !row.takenBy(in, successor, r)) {
				return false
			}
		}
	}
	return true
}

// heal returns what an InstallPlan made for what is unmet in its report and does not exist any more.
func (t table) heal(in *Input, report report) []olmcore.Object {
	var objects []olmcore.Object
	for i, row := range t {
		if row.heal != nil && isAnyUnmet(report[i]) {
			objects = append(objects, row.heal(in)...)
		}
	}
	return objects
}

// concerned returns the keys of the CSVs whose requirements the change of an object concerns.
func (t table) concerned(o olmcore.Object) []types.NamespacedName {
	var keys []types.NamespacedName
	for _, row := range t {
		if row.concerns != nil {
			keys = append(keys, row.concerns(o)...)
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

// everyCSV is the key for every CSV, see olmcore.ExpandKeys.
var everyCSV = []types.NamespacedName{{}}

// concernEvery is the concerns of a row that judges objects of this kind, whichever CSV needs them.
func concernEvery[T olmcore.Object](o olmcore.Object) []types.NamespacedName {
	if _, ok := o.(T); ok {
		return everyCSV
	}
	return nil
}
