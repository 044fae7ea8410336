// SPDX-License-Identifier: Apache-2.0

package operatorgroup

import (
	"slices"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/csv/internal/read"
	"github.com/olmcore/olm/internal/inputs"
	"github.com/olmcore/olm/olmcore"
)

// Reasons of this package's Causes.
const (
	// ReasonStatusChanged means that the status of the OperatorGroup is updated. Nothing to do.
	ReasonStatusChanged = "StatusChanged"
	// ReasonGroupChanged means that labels or ClusterRoles are updated to match the OperatorGroup. Nothing to do.
	ReasonGroupChanged = "GroupChanged"
	// ReasonProvidedAPIsChanged means that the annotation olm.providedAPIs of the OperatorGroup is updated. Nothing to
	// do.
	ReasonProvidedAPIsChanged = model.ReasonProvidedAPIsChanged
)

// Reasons of this package's Diagnostics.
const (
	// ReasonNotObserved means that a list was not read, so the objects and fields that depend on it stay as they are.
	// Give the caller access to the kind in the message.
	ReasonNotObserved = read.ReasonNotObserved
	// ReasonInvalidTargets means that spec.targetNamespaces contains an empty name. The OperatorGroup and its objects
	// stay as they are. To target all namespaces, leave spec.targetNamespaces empty.
	ReasonInvalidTargets = "InvalidTargets"
	// ReasonServiceAccountMissing means that the ServiceAccount in spec.serviceAccountName does not exist, so nothing
	// is installed in the namespace. Create the ServiceAccount.
	ReasonServiceAccountMissing = "ServiceAccountMissing"
	// ReasonGroupNameTooLong means that the name of the OperatorGroup is not a valid label value. The ClusterRoles for the
	// provided APIs need the name as a label, so they are not created. Use a name of at most 63 characters.
	ReasonGroupNameTooLong = "GroupNameTooLong"
)

// Reconcile returns the writes for one OperatorGroup:
//   - the target namespaces, the ServiceAccount and the conditions in the status
//   - the label with the UID of the OperatorGroup on the target namespaces
//   - the ClusterRoles that aggregate the permissions for the APIs that the operators of the OperatorGroup provide
//   - the annotation olm.providedAPIs, from which APIs are removed that no operator provides any more
//
// No ClusterServiceVersion of the namespace is installed until the status of the OperatorGroup is written. If a list
// was not read, the objects and fields that depend on it stay as they are. There is nothing to do if the Outcome
// contains only a Checkpoint or RequeueAfter. The error is an *olmcore.InputError.
//
// Source: operator-lifecycle-manager pkg/controller/operators/olm/operatorgroup.go.
// Differs: OLM does not sort the target namespaces, and removes the ServiceAccount from the status if they change. This
// library sorts the target namespaces and keeps the ServiceAccount. Package sweep finds the ClusterRoles and labels of
// deleted OperatorGroups.
func Reconcile(in Input) (olmcore.Outcome, error) {
	return inputs.Checkpointed(in.Now, in.Checkpoint, in.cover, in.validate, func() (olmcore.Result, error) { return decide(in), nil })
}

// facts contains the classified objects of an Input. observe fills it once. Afterwards it is read-only.
type facts struct {
	in    *Input // as the caller passed it
	group *operatorsv1.OperatorGroup
	// members contains the ClusterServiceVersions of the namespace that are not copies.
	members []*v1alpha1.ClusterServiceVersion
	// account is the ServiceAccount that the spec names.
	account account
}

// observe returns the facts of an Input.
func observe(in *Input) *facts {
	f := &facts{in: in, group: in.OperatorGroup, account: accountOf(in)}
	for _, c := range in.ClusterServiceVersions.Items {
		if c.Namespace == f.group.Namespace && !c.IsCopied() {
			f.members = append(f.members, c)
		}
	}
	return f
}

func decide(in Input) olmcore.Result {
	f := observe(&in)
	switch {
	case f.group.DeletionTimestamp != nil:
		return olmcore.Result{}
	case slices.Contains(f.group.Spec.TargetNamespaces, metav1.NamespaceAll):
		return reportInvalidTargets(f)
	case selectsByLabel(f.group) && !in.Namespaces.Complete:
		return read.NotRead([]string{"Namespaces"}, olmcore.RefOf(f.group), "", "nothing is decided")
	}
	status := writeStatus(f)
	if len(status.Actions) == 0 {
		status = removeAPIs(f) // one write to the OperatorGroup at a time
	}
	return awaitAccount(f).And(reportUnread(f), labelAccount(f), status, labelNamespaces(f), writeClusterRoles(f))
}

// reportInvalidTargets reports an empty name in spec.targetNamespaces.
func reportInvalidTargets(f *facts) olmcore.Result {
	return olmcore.Result{Diagnostics: []olmcore.Diagnostic{
		olmcore.Diagnose(olmcore.Error, ReasonInvalidTargets, olmcore.RefOf(f.group), "spec.targetNamespaces",
			"TargetNamespaces cannot contain NamespaceAll: %v", f.group.Spec.TargetNamespaces),
	}}
}

// reportUnread reports the lists that were not read and that parts of the decision depend on.
func reportUnread(f *facts) olmcore.Result {
	unread := slices.Concat(
		read.Missing(f.in.Siblings, "OperatorGroups (the condition about several in one namespace)"),
		read.Missing(f.in.Namespaces, "Namespaces (their labels)"),
		read.Missing(f.in.ClusterServiceVersions, "ClusterServiceVersions (provided APIs)"),
		read.Missing(f.in.ClusterRoles, "ClusterRoles (permissions on provided APIs)"),
	)
	return read.NotRead(unread, olmcore.RefOf(f.group), "", "dependent objects and fields stay as they are")
}

// removeAPIs removes the APIs that no operator of the namespace provides from the annotation olm.providedAPIs. While a
// ClusterServiceVersion is about to add an API, it removes none.
//
// Source: operator-lifecycle-manager pkg/controller/operators/olm/operatorgroup.go, pruneProvidedAPIs.
// Differs: an operator that was stopped because of its APIs provides none.
func removeAPIs(f *facts) olmcore.Result {
	listed := model.ListedAPIs(f.group)
	if len(listed) == 0 || !f.in.ClusterServiceVersions.Complete || f.group.Spec.StaticProvidedAPIs {
		return olmcore.Result{}
	}
	known, provided := sets.New(listed...), sets.New[model.API]()
	for _, c := range f.members {
		apis := model.ProvidedAPIs(c)
		switch {
		case model.IsShutOut(c):
			continue
		case isEarly(c) && !known.HasAll(apis...):
			return olmcore.Result{}
		}
		provided.Insert(apis...)
	}
	kept := slices.DeleteFunc(slices.Clone(listed), func(a model.API) bool { return !provided.Has(a) })
	if len(kept) == len(listed) {
		return olmcore.Result{}
	}
	return olmcore.Result{Actions: []olmcore.Action{model.AnnotateAPIs(f.group, kept)}}
}

// isEarly reports whether the APIs of a ClusterServiceVersion may not be in the annotation yet.
func isEarly(c *v1alpha1.ClusterServiceVersion) bool {
	return c.DeletionTimestamp == nil && (c.Status.Phase == v1alpha1.CSVPhaseNone || c.Status.Phase == v1alpha1.CSVPhasePending)
}
