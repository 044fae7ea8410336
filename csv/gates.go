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
	"github.com/olmcore/olm/csv/internal/group"
	"github.com/olmcore/olm/olmcore"
)

func neighboursUnread(f *facts) (decision, bool) {
	return f.unread(f.Neighbours.Complete, "ClusterServiceVersions")
}

// metadataOutdated brings finalizer and group annotations about in one write. The API labels go along, and are no
// reason for a write of their own: OLM has given them up.
func metadataOutdated(f *facts) (decision, bool) {
	held := slices.Contains(f.csv.Finalizers, cleanup.Finalizer)
	annotated := f.isLeaving() || f.TakenOver != nil || f.refused || f.isAnnotated()
	if held && annotated {
		return decision{}, false
	}
	after := f.csv.DeepCopy()
	why := olmcore.Cause{Reason: ReasonFinalizerMissing, Message: "cleanup must run before this ClusterServiceVersion goes"}
	if held {
		why = olmcore.Cause{Reason: ReasonGroupChanged, Message: "the annotations do not say what OperatorGroup " + f.group.Name + " does"}
	} else {
		after.Finalizers = append(after.Finalizers, cleanup.Finalizer)
	}
	if !annotated {
		metav1.SetMetaDataAnnotation(&after.ObjectMeta, operatorsv1.OperatorGroupAnnotationKey, f.group.Name)
		metav1.SetMetaDataAnnotation(&after.ObjectMeta, operatorsv1.OperatorGroupNamespaceAnnotationKey, f.group.Namespace)
		metav1.SetMetaDataAnnotation(&after.ObjectMeta, operatorsv1.OperatorGroupTargetsAnnotationKey, strings.Join(f.targets, ","))
		if len(f.targets) == 0 {
			delete(after.Annotations, operatorsv1.OperatorGroupTargetsAnnotationKey)
		}
	}
	if specError(f.csv) == "" && !f.refused {
		maps.DeleteFunc(after.Labels, func(key, _ string) bool { return strings.HasPrefix(key, apiLabelPrefix) })
		after.Labels, _ = olmcore.MergeLabels(after.Labels, apiLabels(f.csv))
	}
	return f.act(olmcore.UpdateOf(f.csv, after, why)), true
}

// isAnnotated reports whether the annotations say what the group does, whose having no targets is said by having none.
func (f *facts) isAnnotated() bool {
	targets, ok := f.csv.Annotations[operatorsv1.OperatorGroupTargetsAnnotationKey]
	return !f.computed || group.IsMember(f.csv, f.group) && ok == (len(f.targets) > 0) && targets == strings.Join(f.targets, ",")
}

const apiLabelPrefix = "olm.api."

// apiLabels are OLM's labels for the APIs that the spec names; what it provides and requires is required.
func apiLabels(c *version) map[string]string {
	labels := map[string]string{}
	for _, a := range group.Provided(c) {
		labels[apiLabelPrefix+a.Hash()] = "provided"
	}
	for _, a := range group.Required(c) {
		labels[apiLabelPrefix+a.Hash()] = "required"
	}
	return labels
}

// takenOver keeps a CSV from being installed over the version that replaces it.
func takenOver(f *facts) (decision, bool) { return beingReplaced(f.TakenOver) }

func invalidSpec(f *facts) (decision, bool) {
	problem := specError(f.csv)
	return fail(v1alpha1.CSVReasonInvalidStrategy, problem), problem != ""
}

func groupsUnread(f *facts) (decision, bool) {
	return f.unread(f.OperatorGroups.Complete, "OperatorGroups")
}

func noGroup(f *facts) (decision, bool) {
	return f.retry(fail(v1alpha1.CSVReasonNoOperatorGroup, "csv in namespace with no operatorgroups")), f.groupCount == 0
}

func manyGroups(f *facts) (decision, bool) {
	return f.retry(fail(v1alpha1.CSVReasonTooManyOperatorGroups,
		"csv created in namespace with multiple operatorgroups, can't pick one automatically")), f.groupCount > 1
}

// groupPace is how often a CSV looks whether the targets of its group are computed.
const groupPace = 5 * time.Second

func groupNotReady(f *facts) (decision, bool) {
	if f.computed {
		return decision{}, false
	}
	d := f.waitFor(groupPace)
	d.Diagnostics = []olmcore.Diagnostic{olmcore.Diagnose(olmcore.Info, ReasonGroupNotReady, olmcore.RefOf(f.group), "status.namespaces",
		"the target namespaces of OperatorGroup %s have not been computed yet", f.group.Name)}
	return d, true
}

func noTargets(f *facts) (decision, bool) {
	return fail(v1alpha1.CSVReasonNoTargetNamespaces, "no targetNamespaces are matched operatorgroups namespace selection"), len(f.targets) == 0
}

func invalidModes(f *facts) (decision, bool) {
	if _, err := v1alpha1.NewInstallModeSet(f.csv.Spec.InstallModes); err != nil {
		return fail(v1alpha1.CSVReasonInvalidInstallModes, err.Error()), true
	}
	return decision{}, false
}

func unsupportedTargets(f *facts) (decision, bool) {
	problem := group.Unsupported(f.csv, f.targets)
	return fail(v1alpha1.CSVReasonUnsupportedOperatorGroup, problem), problem != ""
}

// contestedPace is how often a CSV looks whether the group with the weaker claim to its API has given way.
const contestedPace = 10 * time.Second

func otherGroupsUnread(f *facts) (decision, bool) {
	if !f.OtherGroups.Complete && len(group.Provided(f.csv)) > 0 {
		return f.unread(false, "OperatorGroups of all namespaces")
	}
	contested := f.claim.Conflict != nil && f.claim.Listed
	return f.unread(!contested || f.OtherProviders.Complete, "ClusterServiceVersions of other namespaces")
}

// apiConflict fails a CSV whose APIs its group may not provide, and stops its operator.
//
// Source: operator-lifecycle-manager pkg/controller/operators/olm, APIIntersectionReconciler.
// Differs: of two groups that both list an API the one without a running operator gives way.
func apiConflict(f *facts) (decision, bool) {
	static := f.group.Spec.StaticProvidedAPIs
	var d decision
	switch {
	case f.claim.Conflict != nil && !f.claim.Listed:
		d = fail(v1alpha1.CSVReasonInterOperatorGroupOwnerConflict, "intersecting operatorgroups provide the same apis")
	case static && (f.claim.Lost || f.addsAPIs()):
		d = fail(v1alpha1.CSVReasonCannotModifyStaticOperatorGroupProvidedAPIs, "static provided api operatorgroup cannot be modified by these apis")
	default:
		return decision{}, false
	}
	if !f.Deployments.Complete {
		return f.unread(false, "Deployments")
	}
	d.actions = deployment.Stop(f.csv, f.Deployments.Items, olmcore.Cause{Reason: ReasonAPIConflict, Message: d.Message})
	if other := f.claim.Conflict; other != nil && f.csv.Status.Reason != d.Reason {
		d.Diagnostics = []olmcore.Diagnostic{olmcore.Diagnose(olmcore.Error, ReasonAPIConflict, olmcore.RefOf(f.csv), "",
			"the operator is not installed: OperatorGroup %s/%s provides %s in a namespace that OperatorGroup %s targets too; "+
				"remove one of the two operators, or give the groups separate targets",
			other.Namespace, other.Name, f.claim.Contested, f.group.Name)}
	}
	return d, true
}

// addsAPIs reports whether the group lacks an API that the CSV provides and the annotation can express.
func (f *facts) addsAPIs() bool {
	return f.claim.Conflict == nil && !f.claim.Listed && group.Format(f.apiUnion()) != group.Annotation(f.group)
}

func (f *facts) apiUnion() []group.API {
	return append(group.Listed(f.group), group.Provided(f.csv)...)
}

// removeAPIs takes what another group has the better claim to from the list.
func removeAPIs(f *facts) (decision, bool) {
	if !f.claim.Lost {
		return decision{}, false
	}
	provided := group.Provided(f.csv)
	return f.act(group.List(f.group, slices.DeleteFunc(group.Listed(f.group), func(a group.API) bool { return slices.Contains(provided, a) }))), true
}

// addAPIs makes the group list what the CSV provides, once it is Pending if its operator was stopped for its APIs.
func addAPIs(f *facts) (decision, bool) {
	if !f.addsAPIs() || group.IsShutOut(f.csv) {
		return decision{}, false
	}
	return f.act(group.List(f.group, f.apiUnion())), true
}
