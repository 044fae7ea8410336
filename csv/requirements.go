// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	semver "github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/csv/internal/read"
	"github.com/olmcore/olm/internal/printable"
	"github.com/olmcore/olm/olmcore"
)

// requirement is one row of the table of requirements. A CSV needs them before its operator is installed and while it
// runs. The fields gather, unread and relations are nil if the row needs no objects.
type requirement struct {
	name string // for tests and documentation
	// gather reads the lists that judge needs.
	gather func(*read.Reads, *Input)
	// unread returns the names of the lists that judge needs and that were not read.
	unread func(*Input) []string
	// judge returns the entries of status.requirementStatus, met and unmet. It returns none if the CSV has no such
	// requirement.
	judge func(*Input) []v1alpha1.RequirementStatus
	// relations contains a row for each kind that judge needs. A change of such an object affects the CSVs that the row
	// returns.
	relations []relation
	// takenBy reports whether an entry is unmet because the upgrade to a successor has begun. Nil means that this cannot
	// happen.
	takenBy func(in *Input, successor *version, r v1alpha1.RequirementStatus) bool
	// heal returns the objects that an InstallPlan created for the entries and that do not exist. Nil means that no
	// InstallPlan creates any.
	heal func(*Input) []olmcore.Object
}

// table is a list of rows, in the order of status.requirementStatus.
type table []requirement

// requirements is the table. To add a requirement, add a row.
var requirements = table{
	kubernetesVersion,
	customResourceDefinitions,
	requiredAPIServices,
	ownedAPIServices,
	nativeAPIs,
	serviceAccounts,
}

// requirementStatuses contains the entries of each row of a table, for one CSV.
type requirementStatuses [][]v1alpha1.RequirementStatus

// entries returns the value of status.requirementStatus.
func (r requirementStatuses) entries() []v1alpha1.RequirementStatus { return slices.Concat(r...) }

// isMet reports whether all requirements are met.
func (r requirementStatuses) isMet() bool { return !slices.ContainsFunc(r, isAnyUnmet) }

func (t table) gather(r *read.Reads, in *Input) {
	for _, row := range t {
		if row.gather != nil {
			row.gather(r, in)
		}
	}
}

// unread returns the name of a list that the requirements of a CSV need and that was not read. It is empty if all were
// read.
func (t table) unread(in *Input) string {
	for _, row := range t {
		if row.unread == nil {
			continue
		}
		lists := row.unread(in)
		if len(lists) > 0 && len(row.judge(in)) > 0 {
			return lists[0]
		}
	}
	return ""
}

func (t table) judge(in *Input) requirementStatuses {
	r := make(requirementStatuses, len(t))
	for i, row := range t {
		r[i] = printedRequirements(row.judge(in))
	}
	return r
}

// printedRequirements returns the entries with invisible characters escaped in their messages.
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

// newReport returns the entries for status.requirementStatus, and whether they differ from the recorded ones.
func newReport(f *facts, d decision) (entries []v1alpha1.RequirementStatus, isNew bool) {
	if !d.reports {
		return nil, false
	}
	entries = f.report.entries()
	return entries, !sameRequirements(f.csv.Status.RequirementStatus, entries)
}

// sameRequirements reports whether a recorded requirement report has the entries of a new one. Their order does not
// count, because OLM lists ServiceAccounts in random order. Escaped characters do not count either, because OLM does
// not escape them.
func sameRequirements(recorded, report []v1alpha1.RequirementStatus) bool {
	return equality.Semantic.DeepEqual(recorded, report) ||
		equality.Semantic.DeepEqual(sortedRequirements(printedRequirements(recorded)), sortedRequirements(report))
}

func sortedRequirements(entries []v1alpha1.RequirementStatus) []v1alpha1.RequirementStatus {
	return slices.SortedStableFunc(slices.Values(entries), func(a, b v1alpha1.RequirementStatus) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Version, b.Version), strings.Compare(a.Kind, b.Kind),
			strings.Compare(a.Name, b.Name))
	})
}

// takenBy reports whether all unmet entries of a report are unmet because the upgrade to a successor has begun.
func (t table) takenBy(in *Input, report requirementStatuses, successor *version) bool {
	for i, row := range t {
		for _, r := range report[i] {
			if isUnmet(r) && (row.takenBy == nil || !row.takenBy(in, successor, r)) {
				return false
			}
		}
	}
	return true
}

// heal returns the objects that an InstallPlan created for unmet entries of a report and that no longer exist.
func (t table) heal(in *Input, report requirementStatuses) []olmcore.Object {
	var objects []olmcore.Object
	for i, row := range t {
		if row.heal != nil && isAnyUnmet(report[i]) {
			objects = append(objects, row.heal(in)...)
		}
	}
	return objects
}

// relations returns the rows of the table of relations for the objects that the requirements need.
func (t table) relations() (rows []relation) {
	for _, row := range t {
		rows = append(rows, row.relations...)
	}
	return rows
}

// Values of the status of an entry. The API types have no constants for the last two.
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

// isAnyUnmet reports whether at least one entry is unmet.
func isAnyUnmet(entries []v1alpha1.RequirementStatus) bool {
	return slices.ContainsFunc(entries, isUnmet)
}

func byName(a, b v1alpha1.RequirementStatus) int { return strings.Compare(a.Name, b.Name) }

// requiredAPIServices judges the required APIServices, which other operators provide.
var requiredAPIServices = requirement{
	name: "RequiredAPIServices",
	gather: func(r *read.Reads, in *Input) {
		var names []string
		for _, d := range in.ClusterServiceVersion.Spec.APIServiceDefinitions.Required {
			names = append(names, d.GetName())
		}
		in.APIServices = read.Named[*apiregistrationv1.APIService](r, "", names)
	},
	unread:    func(in *Input) []string { return read.Missing(in.APIServices, "APIServices") },
	judge:     judgeRequiredAPIServices,
	relations: []relation{relatedAPIServices},
}

// ownedAPIServices judges the owned APIServices. The install strategy must contain the Deployment that serves them.
var ownedAPIServices = requirement{name: "OwnedAPIServices", judge: judgeOwnedAPIServices}

// nativeAPIs judges spec.nativeAPIs, the kinds that the cluster must serve.
var nativeAPIs = requirement{name: "NativeAPIs", judge: judgeNativeAPIs}

func apiService(name string) v1alpha1.RequirementStatus {
	return v1alpha1.RequirementStatus{Group: apiregistrationv1.GroupName, Version: "v1", Kind: "APIService", Name: name}
}

// judgeRequiredAPIServices returns one entry for each required APIService that the CSV does not own.
func judgeRequiredAPIServices(in *Input) []v1alpha1.RequirementStatus {
	definitions := &in.ClusterServiceVersion.Spec.APIServiceDefinitions
	var report []v1alpha1.RequirementStatus
	for _, d := range definitions.Required {
		r := apiService(d.GetName())
		known := slices.ContainsFunc(definitions.Owned, func(own v1alpha1.APIServiceDescription) bool { return own.GetName() == r.Name }) ||
			slices.ContainsFunc(report, func(before v1alpha1.RequirementStatus) bool { return before.Name == r.Name })
		if known {
			continue
		}
		service, exists := model.Find(in.APIServices.Items, "", r.Name)
		kind := schema.GroupVersionKind{Group: d.Group, Version: d.Version, Kind: d.Kind}
		r.Status = notPresent
		switch {
		case in.ServedAPIs.Complete && !slices.Contains(in.ServedAPIs.Items, kind):
			r.Message = fmt.Sprintf("kind %s is not served by %s", d.Kind, r.Name)
		case !exists:
			r.Message = fmt.Sprintf("APIService %s not found", r.Name)
		case !isAvailable(service):
			r.Message = fmt.Sprintf("APIService %s is not available", r.Name)
		default:
			r.Status, r.UUID = present, string(service.UID)
		}
		report = append(report, r)
	}
	slices.SortFunc(report, byName)
	return report
}

func isAvailable(service *apiregistrationv1.APIService) bool {
	return slices.ContainsFunc(service.Status.Conditions, func(c apiregistrationv1.APIServiceCondition) bool {
		return c.Type == apiregistrationv1.Available && c.Status == apiregistrationv1.ConditionTrue
	})
}

// judgeOwnedAPIServices returns one entry for each owned APIService. If it serves several kinds, all of their
// Deployments must be part of the strategy.
func judgeOwnedAPIServices(in *Input) []v1alpha1.RequirementStatus {
	served, declared := map[string]bool{}, model.DeploymentNames(in.ClusterServiceVersion) // by name
	for _, d := range in.ClusterServiceVersion.Spec.APIServiceDefinitions.Owned {
		before, known := served[d.GetName()]
		served[d.GetName()] = declared.Has(d.DeploymentName) && (before || !known)
	}
	var report []v1alpha1.RequirementStatus
	for name, found := range served {
		r := apiService(name)
		r.Status = deploymentFound
		if !found {
			r.Status = deploymentNotFound
		}
		report = append(report, r)
	}
	slices.SortFunc(report, byName)
	return report
}

// judgeNativeAPIs returns one entry for each native API, in the order of the spec.
func judgeNativeAPIs(in *Input) []v1alpha1.RequirementStatus {
	var report []v1alpha1.RequirementStatus
	for _, api := range in.ClusterServiceVersion.Spec.NativeAPIs {
		gvk := schema.GroupVersionKind{Group: api.Group, Version: api.Version, Kind: api.Kind}
		r := v1alpha1.RequirementStatus{
			Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Name: gvk.Version + "." + gvk.Group,
			Status: notPresent, Message: "Native API does not exist",
		}
		switch {
		case in.ServedAPIs.Complete && slices.Contains(in.ServedAPIs.Items, gvk),
			!in.ServedAPIs.Complete && slices.Contains(kubernetesKinds, gvk):
			r.Status, r.Message = present, "Native API exists"
		case !in.ServedAPIs.Complete:
			r.Message = fmt.Sprintf("API discovery for %s failed", gvk.GroupVersion())
		}
		report = append(report, r)
	}
	return report
}

// kubernetesKinds contains the kinds that every cluster with this library serves, because the library itself uses them.
var kubernetesKinds = func() []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for _, k := range olmcore.Kinds() {
		switch k.Group {
		case "", "apps", "batch", "rbac.authorization.k8s.io", "apiextensions.k8s.io":
			kinds = append(kinds, k.GroupVersionKind)
		}
	}
	return kinds
}()

// kubernetesVersion judges spec.minKubeVersion.
var kubernetesVersion = requirement{name: "KubernetesVersion", judge: judgeKubernetesVersion}

func judgeKubernetesVersion(in *Input) []v1alpha1.RequirementStatus {
	minimum := in.ClusterServiceVersion.Spec.MinKubeVersion
	if minimum == "" {
		return nil
	}
	r := v1alpha1.RequirementStatus{
		Group: v1alpha1.GroupName, Version: v1alpha1.GroupVersion, Kind: v1alpha1.ClusterServiceVersionKind,
		Name: in.ClusterServiceVersion.Name, Status: notSatisfied,
	}
	release, _, _ := strings.Cut(in.KubernetesVersion, "-")
	server, serverErr := parseKubernetesVersion(release)
	want, wantErr := parseKubernetesVersion(minimum)
	switch {
	case in.KubernetesVersion == "":
		r.Message = "Server version discovery error"
	case serverErr != nil:
		r.Message = "Server version parsing error"
	case wantErr != nil:
		r.Message = "CSV version parsing error"
	case want.GT(server):
		r.Message = fmt.Sprintf("CSV version requirement not met: minKubeVersion (%s) > server version (%s)", minimum, server)
	default:
		r.Status, r.Message = present, fmt.Sprintf("CSV minKubeVersion (%s) less than server version (%s)", minimum, in.KubernetesVersion)
	}
	return []v1alpha1.RequirementStatus{r}
}

// parseKubernetesVersion parses a semantic version. It accepts a leading v and a missing patch number.
func parseKubernetesVersion(s string) (semver.Version, error) {
	s = strings.TrimPrefix(s, "v")
	core := strings.IndexAny(s, "-+")
	if core < 0 {
		core = len(s)
	}
	if strings.Count(s[:core], ".") == 1 {
		s = s[:core] + ".0" + s[core:]
	}
	return semver.Parse(s)
}

// customResourceDefinitions judges the CRDs that a CSV owns or requires.
var customResourceDefinitions = requirement{
	name: "CustomResourceDefinitions",
	gather: func(r *read.Reads, in *Input) {
		var names []string
		definitions := &in.ClusterServiceVersion.Spec.CustomResourceDefinitions
		for _, d := range slices.Concat(definitions.Owned, definitions.Required) {
			names = append(names, d.Name)
		}
		in.CustomResourceDefinitions = read.Named[*apiextensionsv1.CustomResourceDefinition](r, "", names)
	},
	unread: func(in *Input) []string {
		return read.Missing(in.CustomResourceDefinitions, "CustomResourceDefinitions")
	},
	judge:     judgeDefinitions,
	relations: []relation{relatedCRDs},
	takenBy:   servesNewerVersions,
}

// servesNewerVersions reports whether an owned CRD exists but does not serve the versions of this CSV. The CRD of an
// upgrade is applied before the new CSV is installed, and may serve only newer versions. An existing CRD is reported as
// not present only for this reason.
func servesNewerVersions(in *Input, _ *version, r v1alpha1.RequirementStatus) bool {
	_, exists := model.Find(in.CustomResourceDefinitions.Items, "", r.Name)
	return exists && r.Status == notPresent && model.DescribesCRD(in.ClusterServiceVersion.Spec.CustomResourceDefinitions.Owned, r.Name)
}

// judgeDefinitions returns one entry for each CRD, sorted by name. If a CRD is owned and required, only the versions of
// its owned descriptions are checked.
func judgeDefinitions(in *Input) []v1alpha1.RequirementStatus {
	definitions := &in.ClusterServiceVersion.Spec.CustomResourceDefinitions
	versions := map[string][]string{} // by CRD
	isOwned := map[string]bool{}
	for _, d := range definitions.Owned {
		versions[d.Name], isOwned[d.Name] = append(versions[d.Name], d.Version), true
	}
	for _, d := range definitions.Required {
		if !isOwned[d.Name] {
			versions[d.Name] = append(versions[d.Name], d.Version)
		}
	}
	found := model.IndexByName(in.CustomResourceDefinitions.Items, "")
	report := make([]v1alpha1.RequirementStatus, 0, len(versions))
	for name, described := range versions {
		r := v1alpha1.RequirementStatus{Group: apiextensionsv1.GroupName, Version: "v1", Kind: "CustomResourceDefinition", Name: name}
		crd := found[name]
		r.Status, r.Message = judgeDefinition(in, crd, described, isOwned[name])
		if r.Status == present {
			r.UUID = string(crd.UID)
		}
		report = append(report, r)
	}
	slices.SortFunc(report, byName)
	return report
}

// judgeDefinition returns the status of one CRD. described contains the versions that the CSV describes.
func judgeDefinition(
	in *Input, crd *apiextensionsv1.CustomResourceDefinition, described []string, isOwned bool,
) (status v1alpha1.StatusReason, message string) {
	switch {
	case crd == nil:
		return notPresent, "CRD is not present"
	case crd.DeletionTimestamp != nil:
		return notAvailable, "CRD is being deleted"
	}
	others := installedAlongside(in, crd)
	if isOwned && len(others) > 0 {
		return notSatisfied, "CRD installed alongside other CSV(s): " + strings.Join(others, ", ")
	}
	var unserved []string
	for _, version := range described {
		if !serves(crd, version) {
			unserved = append(unserved, version)
		}
	}
	slices.Sort(unserved)
	switch {
	case len(unserved) > 0 && len(described) > 1:
		return notPresent, "CRD version not served: " + strings.Join(slices.Compact(unserved), ", ")
	case len(unserved) > 0:
		return notPresent, "CRD version not served"
	case !hasTrueCondition(crd, apiextensionsv1.Established) || !hasTrueCondition(crd, apiextensionsv1.NamesAccepted):
		return notAvailable, "CRD is present but the Established condition is False (not available)"
	}
	return present, "CRD is present and Established condition is true"
}

func serves(crd *apiextensionsv1.CustomResourceDefinition, version string) bool {
	return slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Name == version && v.Served
	})
}

func hasTrueCondition(crd *apiextensionsv1.CustomResourceDefinition, condition apiextensionsv1.CustomResourceDefinitionConditionType) bool {
	return slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == condition && c.Status == apiextensionsv1.ConditionTrue
	})
}

// installedAlongside returns the older versions of this CSV that installed the CRD. It returns none if this CSV has
// installed the CRD too. Otherwise the CRD of this version has not been applied yet. The older versions are those that
// spec.replaces leads to, through existing CSVs that the annotations of the CRD name.
func installedAlongside(in *Input, crd *apiextensionsv1.CustomResourceDefinition) []string {
	noted := map[string]*version{}
	for _, key := range model.InstalledAlongside(crd) {
		if key.Namespace != in.ClusterServiceVersion.Namespace {
			continue
		}
		if key.Name == in.ClusterServiceVersion.Name {
			return nil
		}
		other, ok := model.Find(in.Neighbours.Items, key.Namespace, key.Name)
		if ok && !other.IsCopied() {
			noted[key.Name] = other
		}
	}
	var reached []string
	other := noted[in.ClusterServiceVersion.Spec.Replaces]
	for other != nil && !slices.Contains(reached, other.Name) {
		reached = append(reached, other.Name)
		other = noted[other.Spec.Replaces]
	}
	slices.Sort(reached)
	return reached
}
