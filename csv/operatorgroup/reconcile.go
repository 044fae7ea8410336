// SPDX-License-Identifier: Apache-2.0

package operatorgroup

import (
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/olmcore/olm/csv/internal/group"
	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/csv/internal/read"
	"github.com/olmcore/olm/olmcore"
)

// Reasons of this package's Causes: why an action is asked for.
const (
	// ReasonStatusChanged: the status follows what was observed. Nothing to do.
	ReasonStatusChanged = "StatusChanged"
	// ReasonGroupChanged: labels or ClusterRoles follow the OperatorGroup. Nothing to do.
	ReasonGroupChanged = "GroupChanged"
	// ReasonProvidedAPIsChanged: the annotation of the OperatorGroup follows what its operators provide. Nothing to do.
	ReasonProvidedAPIsChanged = group.ReasonProvidedAPIsChanged
)

// Reasons of this package's Diagnostics.
const (
	// ReasonNotObserved: a list was not read, and what it would decide stays as it is. Give the caller access to the
	// kind that it names.
	ReasonNotObserved = "NotObserved"
	// ReasonInvalidTargets: the group lists the empty name among its target namespaces; its targets stay as they were.
	// To target all, list none.
	ReasonInvalidTargets = "InvalidTargets"
	// ReasonServiceAccountMissing: the ServiceAccount that the group prescribes does not exist, so nothing is installed
	// in its namespace. Create it.
	ReasonServiceAccountMissing = "ServiceAccountMissing"
	// ReasonGroupNameTooLong: the name of the group is no valid label value, and the ClusterRoles of a group carry it
	// as one. No ClusterRole aggregates the rights on what its operators provide. Use a name of at most 63 characters.
	ReasonGroupNameTooLong = "GroupNameTooLong"
)

// unreadPace is how often a group looks again whose lists were not read.
const unreadPace = 5 * time.Second

// Reconcile decides about one OperatorGroup: the target namespaces in its status, its ServiceAccount, and its
// conditions; the label with its UID on the targets; the ClusterRoles that aggregate what its operators provide; and
// the annotation that lists those APIs, from which it takes what no operator provides any more. Without it no
// ClusterServiceVersion of the namespace is installed, because what its operator is to watch is not known. What a list
// that was not read would decide stays as it is. An Outcome with nothing but a Checkpoint, or a time, means that
// nothing is to be done. The error is an *olmcore.InputError.
//
// Source: operator-lifecycle-manager pkg/controller/operators/olm/operatorgroup.go.
// Differs: the targets are sorted, and a change of targets keeps the ServiceAccount. What a deleted group leaves is for
// package sweep.
func Reconcile(in Input) (Outcome, error) {
	return olmcore.Checkpointed(in.Now, in.Checkpoint, in.cover, in.validate, func() (olmcore.Result, error) { return decide(&in), nil })
}

func decide(in *Input) (res olmcore.Result) {
	g := in.OperatorGroup
	say := func(severity olmcore.Severity, reason, path, format string, args ...any) {
		res.Diagnostics = append(res.Diagnostics, olmcore.Diagnose(severity, reason, olmcore.RefOf(g), path, format, args...))
	}
	switch {
	case g.DeletionTimestamp != nil:
		return res
	case slices.Contains(g.Spec.TargetNamespaces, metav1.NamespaceAll):
		say(olmcore.Error, ReasonInvalidTargets, "spec.targetNamespaces", "TargetNamespaces cannot contain NamespaceAll: %v", g.Spec.TargetNamespaces)
		return res
	case selectsByLabel(g) && !in.Namespaces.Complete:
		say(olmcore.Warning, ReasonNotObserved, "", "the list of Namespaces was not read, so nothing is decided")
		res.Requeue(unreadPace)
		return res
	}
	account := accountOf(in)
	res.Requeue(account.awaited)
	if account.unread {
		say(olmcore.Warning, ReasonNotObserved, "spec.serviceAccountName",
			"the list of ServiceAccounts was not read, so nothing is decided about ServiceAccount %s", g.Spec.ServiceAccountName)
		res.Requeue(unreadPace)
	}
	unread := slices.Concat(
		read.Missing(in.Siblings, "OperatorGroups (the condition for several in one namespace)"),
		read.Missing(in.Namespaces, "Namespaces (their labels)"),
		read.Missing(in.ClusterServiceVersions, "ClusterServiceVersions (provided APIs)"),
		read.Missing(in.ClusterRoles, "ClusterRoles (those that aggregate the rights on provided APIs)"),
	)
	if len(unread) > 0 {
		say(olmcore.Warning, ReasonNotObserved, "", "what these lists would decide stays as it is, as they were not read: %s", strings.Join(unread, ", "))
		res.Requeue(unreadPace)
	}
	res.Actions = account.label(g)
	if status, changed := desiredStatus(in, account); changed {
		after := g.DeepCopy()
		after.Status = status
		res.Actions = append(res.Actions, olmcore.UpdateStatusOf(g, after, olmcore.Cause{
			Reason: ReasonStatusChanged, Message: "the targets, the ServiceAccount or the conditions changed",
		}))
		if account.missing != "" {
			say(olmcore.Warning, ReasonServiceAccountMissing, "spec.serviceAccountName", "%s", account.missing)
		}
	} else if apis, pruned := listedAPIs(in); pruned {
		res.Actions = append(res.Actions, group.List(g, apis))
	}
	res.Actions = append(res.Actions, namespaceLabels(in)...)
	if owned.IsLabelValue(g.Name) {
		res.Actions = append(res.Actions, clusterRoles(in)...)
	} else {
		say(olmcore.Warning, ReasonGroupNameTooLong, "metadata.name",
			"no ClusterRoles are created for the OperatorGroup: its name has %d characters, and a label value has at most %d",
			len(g.Name), validation.LabelValueMaxLength)
	}
	return res
}

// listedAPIs returns the APIs of the annotation without those that no operator of the namespace provides, and whether
// that is a change. While a ClusterServiceVersion is about to add an API it waits.
//
// Source: operator-lifecycle-manager pkg/controller/operators/olm/operatorgroup.go, pruneProvidedAPIs.
// Differs: those whose operator was stopped for its APIs provide nothing.
func listedAPIs(in *Input) (kept []group.API, pruned bool) {
	listed := group.Listed(in.OperatorGroup)
	if len(listed) == 0 || !in.ClusterServiceVersions.Complete || in.OperatorGroup.Spec.StaticProvidedAPIs {
		return listed, false
	}
	known, provided := sets.New(listed...), sets.New[group.API]()
	for _, c := range in.ClusterServiceVersions.Items {
		if !isMember(in, c) || group.IsShutOut(c) {
			continue
		}
		early := c.DeletionTimestamp == nil && (c.Status.Phase == v1alpha1.CSVPhaseNone || c.Status.Phase == v1alpha1.CSVPhasePending)
		apis := group.Provided(c)
		if early && !known.HasAll(apis...) {
			return listed, false
		}
		provided.Insert(apis...)
	}
	kept = slices.DeleteFunc(slices.Clone(listed), func(a group.API) bool { return !provided.Has(a) })
	return kept, len(kept) < len(listed)
}

// isMember reports whether a ClusterServiceVersion is an original one of the group's namespace.
func isMember(in *Input, c *v1alpha1.ClusterServiceVersion) bool {
	return c.Namespace == in.OperatorGroup.Namespace && !c.IsCopied()
}
