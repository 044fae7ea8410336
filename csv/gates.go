// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"maps"
	"slices"
	"strings"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/csv/internal/deployment"
	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/csv/internal/read"
	"github.com/olmcore/olm/olmcore"
)

// gates contains the rows that are tried before the phase machine. Their functions follow in the same order. A CSV that
// a later version replaces needs no valid spec and no OperatorGroup.
var gates = []rule{
	{Name: ruleNotObserved, From: everyPhase, Decide: waitForNeighbours},
	{Name: ruleMetadata, From: everyPhase, Decide: updateMetadata},
	{Name: "TakenOver", From: notLeaving, To: replacing, Decide: replaceTakenOver},
	{Name: "PermissionsRefused", From: failed, To: pending, Decide: waitForPermissions},
	{Name: "InvalidSpec", From: notLeaving, To: failed, Decide: rejectSpec},
	{Name: ruleNotObserved, From: notLeaving, Decide: waitForGroups},
	{Name: "NoOperatorGroup", From: notLeaving, To: failed, Decide: failWithoutGroup},
	{Name: "TooManyOperatorGroups", From: notLeaving, To: failed, Decide: failWithManyGroups},
	{Name: "OperatorGroupNotReady", From: notLeaving, Decide: waitForTargets},
	{Name: "NoTargetNamespaces", From: notLeaving, To: failed, Decide: failWithoutTargets},
	{Name: "InvalidInstallModes", From: notLeaving, To: failed, Decide: rejectInstallModes},
	{Name: "UnsupportedOperatorGroup", From: notLeaving, To: failed, Decide: rejectTargets},
	{Name: ruleNotObserved, From: notLeaving, Decide: waitForOtherGroups},
	{Name: "APIConflict", From: notLeaving, To: failed, Decide: failWithAPIConflict},
	{Name: "RemoveProvidedAPIs", From: notLeaving, Decide: removeAPIs},
	{Name: "AddProvidedAPIs", From: notLeaving, Decide: addAPIs},
}

// ruleMetadata is the name of the row that writes the metadata of the CSV. The status is written by the next call.
const ruleMetadata = "MetadataOutdated"

func waitForNeighbours(f *facts) (decision, bool) {
	return waitForList(f, f.in.Neighbours.Complete, "ClusterServiceVersions")
}

// waitForList keeps the recorded status until the caller reads a list. It decides nothing if the list was read.
func waitForList(f *facts, wasRead bool, list string) (d decision, decided bool) {
	if wasRead {
		return decision{}, false
	}
	unread := read.NotRead([]string{list}, olmcore.RefOf(f.csv), "", "nothing is decided")
	return f.stay().named(ruleNotObserved).requeue(unread.RequeueAfter).diagnose(unread.Diagnostics...), true
}

// updateMetadata adds the finalizer and the annotations of the OperatorGroup in one write. It also updates the API
// labels, but never writes because of them: OLM does not maintain them any more.
func updateMetadata(f *facts) (decision, bool) {
	hasFinalizer := slices.Contains(f.csv.Finalizers, cleanup.Finalizer)
	keepsAnnotations := f.isLeaving() || f.chain.TakenOver != nil || isRefused(f.csv) || isAnnotated(f)
	if hasFinalizer && keepsAnnotations {
		return decision{}, false
	}
	after := f.csv.DeepCopy()
	cause := olmcore.Cause{Reason: ReasonFinalizerMissing, Message: "cleanup must run before this ClusterServiceVersion is deleted"}
	if hasFinalizer {
		cause = olmcore.Cause{
			Reason: ReasonGroupChanged, Message: "the annotations do not match OperatorGroup " + f.group.Name,
		}
	} else {
		after.Finalizers = append(after.Finalizers, cleanup.Finalizer)
	}
	if !keepsAnnotations {
		metav1.SetMetaDataAnnotation(&after.ObjectMeta, operatorsv1.OperatorGroupAnnotationKey, f.group.Name)
		metav1.SetMetaDataAnnotation(&after.ObjectMeta, operatorsv1.OperatorGroupNamespaceAnnotationKey, f.group.Namespace)
		metav1.SetMetaDataAnnotation(&after.ObjectMeta, operatorsv1.OperatorGroupTargetsAnnotationKey, strings.Join(f.targets, ","))
		if len(f.targets) == 0 {
			delete(after.Annotations, operatorsv1.OperatorGroupTargetsAnnotationKey)
		}
	}
	if specError(f.csv) == "" && !isRefused(f.csv) {
		maps.DeleteFunc(after.Labels, func(key, _ string) bool { return strings.HasPrefix(key, apiLabelPrefix) })
		after.Labels, _ = olmcore.MergeMaps(after.Labels, apiLabels(f.csv))
	}
	return f.stay().write(olmcore.UpdateOf(f.csv, after, cause)), true
}

// isAnnotated reports whether the annotations of the CSV match the OperatorGroup. The annotation of the targets must
// not exist if the group has no targets.
func isAnnotated(f *facts) bool {
	annotated, exists := f.csv.Annotations[operatorsv1.OperatorGroupTargetsAnnotationKey]
	isCurrent := exists == (len(f.targets) > 0) && annotated == strings.Join(f.targets, ",")
	return !f.hasTargets || model.IsMemberOf(f.csv, f.group) && isCurrent
}

const apiLabelPrefix = "olm.api."

// apiLabels returns OLM's labels for the APIs that the spec names. An API that is provided and required is labelled as
// required.
func apiLabels(c *version) map[string]string {
	labels := map[string]string{}
	for _, a := range model.ProvidedAPIs(c) {
		labels[apiLabelPrefix+a.Hash()] = "provided"
	}
	for _, a := range model.RequiredAPIs(c) {
		labels[apiLabelPrefix+a.Hash()] = "required"
	}
	return labels
}

// replaceTakenOver makes a CSV Replacing instead of installing it over a version that replaces it.
func replaceTakenOver(f *facts) (decision, bool) { return beingReplaced(f.chain.TakenOver) }

// beingReplaced makes a CSV Replacing if by, the CSV that replaces it, is not nil.
func beingReplaced(by *version) (d decision, decided bool) {
	if by == nil {
		return decision{}, false
	}
	return move(v1alpha1.CSVPhaseReplacing, v1alpha1.CSVReasonBeingReplaced, "being replaced by csv: "+by.Name), true
}

func rejectSpec(f *facts) (decision, bool) {
	problem := specError(f.csv)
	return fail(v1alpha1.CSVReasonInvalidStrategy, problem), problem != ""
}

func waitForGroups(f *facts) (decision, bool) {
	return waitForList(f, f.in.OperatorGroups.Complete, "OperatorGroups")
}

func failWithoutGroup(f *facts) (decision, bool) {
	return fail(v1alpha1.CSVReasonNoOperatorGroup, "csv in namespace with no operatorgroups").
		requeue(f.retryIn(v1alpha1.CSVPhaseFailed)), f.groupCount == 0
}

func failWithManyGroups(f *facts) (decision, bool) {
	return fail(v1alpha1.CSVReasonTooManyOperatorGroups,
		"csv created in namespace with multiple operatorgroups, can't pick one automatically").
		requeue(f.retryIn(v1alpha1.CSVPhaseFailed)), f.groupCount > 1
}

// groupPace is how often a CSV checks whether the status of its OperatorGroup contains the target namespaces.
const groupPace = 5 * time.Second

func waitForTargets(f *facts) (decision, bool) {
	if f.hasTargets {
		return decision{}, false
	}
	return f.stay().requeue(groupPace).diagnose(
		olmcore.Diagnose(olmcore.Info, ReasonGroupNotReady, olmcore.RefOf(f.group), "status.namespaces",
			"the target namespaces of OperatorGroup %s have not been computed yet", f.group.Name)), true
}

func failWithoutTargets(f *facts) (decision, bool) {
	const message = "no targetNamespaces are matched operatorgroups namespace selection"
	return fail(v1alpha1.CSVReasonNoTargetNamespaces, message), len(f.targets) == 0
}

func rejectInstallModes(f *facts) (decision, bool) {
	if _, err := v1alpha1.NewInstallModeSet(f.csv.Spec.InstallModes); err != nil {
		return fail(v1alpha1.CSVReasonInvalidInstallModes, err.Error()), true
	}
	return decision{}, false
}

func rejectTargets(f *facts) (decision, bool) {
	problem := model.UnsupportedTargets(f.csv, f.targets)
	return fail(v1alpha1.CSVReasonUnsupportedOperatorGroup, problem), problem != ""
}

// contestedPace is how often a CSV checks whether another OperatorGroup still lists its API.
const contestedPace = 10 * time.Second

// waitForOtherGroups waits for the lists that show which OperatorGroups provide the same APIs.
func waitForOtherGroups(f *facts) (decision, bool) {
	if !f.in.OtherGroups.Complete && len(model.ProvidedAPIs(f.csv)) > 0 {
		return waitForList(f, false, "OperatorGroups of all namespaces")
	}
	isContested := f.claim.Conflict != nil && f.claim.Listed
	return waitForList(f, !isContested || f.in.OtherProviders.Complete, "ClusterServiceVersions of other namespaces")
}

// failWithAPIConflict fails a CSV whose OperatorGroup must not provide its APIs, and stops its operator.
//
// Source: operator-lifecycle-manager pkg/controller/operators/olm, APIIntersectionReconciler. Differs: if two groups
// list an API, the one without a running operator loses it.
func failWithAPIConflict(f *facts) (decision, bool) {
	var d decision
	switch {
	case f.claim.Conflict != nil && !f.claim.Listed:
		d = fail(v1alpha1.CSVReasonInterOperatorGroupOwnerConflict, "intersecting operatorgroups provide the same apis")
	case f.group.Spec.StaticProvidedAPIs && (f.claim.Lost || addsToGroup(f)):
		d = fail(v1alpha1.CSVReasonCannotModifyStaticOperatorGroupProvidedAPIs,
			"static provided api operatorgroup cannot be modified by these apis")
	default:
		return decision{}, false
	}
	if !f.in.Deployments.Complete {
		return waitForList(f, false, "Deployments")
	}
	d = d.write(deployment.Stop(f.csv, f.in.Deployments.Items, olmcore.Cause{Reason: ReasonAPIConflict, Message: d.message})...)
	other := f.claim.Conflict
	if other != nil && f.csv.Status.Reason != d.reason {
		d = d.diagnose(olmcore.Diagnose(olmcore.Error, ReasonAPIConflict, olmcore.RefOf(f.csv), "",
			"the operator is not installed: OperatorGroup %s/%s provides %s in a namespace that OperatorGroup %s targets too; "+
				"remove one of the two operators, or give the groups separate targets",
			other.Namespace, other.Name, f.claim.Contested, f.group.Name))
	}
	return d, true
}

// addsToGroup reports whether the CSV provides an API that the annotation of the OperatorGroup can express but does not
// list yet.
func addsToGroup(f *facts) bool {
	return f.claim.Conflict == nil && !f.claim.Listed && model.FormatAPIs(groupAPIs(f)) != model.ProvidedAPIsAnnotation(f.group)
}

// groupAPIs returns the APIs that the OperatorGroup lists, followed by those that the CSV provides.
func groupAPIs(f *facts) []model.API {
	return append(model.ListedAPIs(f.group), model.ProvidedAPIs(f.csv)...)
}

// removeAPIs removes the APIs of the CSV from the OperatorGroup if another group has the stronger claim to them.
func removeAPIs(f *facts) (decision, bool) {
	if !f.claim.Lost {
		return decision{}, false
	}
	provided := model.ProvidedAPIs(f.csv)
	left := slices.DeleteFunc(model.ListedAPIs(f.group), func(a model.API) bool { return slices.Contains(provided, a) })
	return f.stay().write(model.AnnotateAPIs(f.group, left)), true
}

// addAPIs adds the APIs that the CSV provides to the OperatorGroup. If the operator was stopped because of its APIs,
// the CSV must be Pending first.
func addAPIs(f *facts) (decision, bool) {
	if !addsToGroup(f) || model.IsShutOut(f.csv) {
		return decision{}, false
	}
	return f.stay().write(model.AnnotateAPIs(f.group, groupAPIs(f))), true
}
