// SPDX-License-Identifier: Apache-2.0

package operatorgroup

import (
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/csv/internal/group"
	"github.com/olmcore/olm/olmcore"
)

// unreadPace is how often a group looks again whose lists were not read.
const unreadPace = 5 * time.Second

// Reconcile decides about one OperatorGroup: the target namespaces in its status, its
// ServiceAccount, and its conditions; the label with its UID on the targets; the
// ClusterRoles that aggregate what its operators provide; and the annotation that lists
// those APIs, from which it takes what no operator provides any more. Without it no
// ClusterServiceVersion of the namespace is installed, because what its operator is to
// watch is not known. What a list that was not read would decide stays as it is. An
// Outcome with nothing but a Checkpoint, or a time, means that nothing is to be done. The
// error is an *olmcore.InputError.
//
// Source: operator-lifecycle-manager pkg/controller/operators/olm/operatorgroup.go.
// Differs: the targets are sorted, and a change of targets keeps the ServiceAccount.
// What a deleted group leaves is for package sweep.
func Reconcile(in Input) (Outcome, error) {
	c := in.Checkpoint.Compare(in.Now)
	in.cover(&c)
	if wait, same := c.Holds(); same {
		return Outcome{Result: olmcore.Result{RequeueAfter: wait}, Checkpoint: in.Checkpoint}, nil
	}
	if err := in.validate(); err != nil {
		return Outcome{}, err
	}
	out := Outcome{Result: decide(&in)}
	c = olmcore.NewCoverage(in.Now, out.Result)
	in.cover(&c)
	out.Checkpoint = c.Checkpoint()
	return out, nil
}

func decide(in *Input) olmcore.Result {
	g := in.OperatorGroup
	if g.DeletionTimestamp != nil {
		return olmcore.Result{}
	}
	var res olmcore.Result
	if slices.Contains(g.Spec.TargetNamespaces, metav1.NamespaceAll) {
		res.Diagnostics = []olmcore.Diagnostic{olmcore.Diagnose(olmcore.Error, ReasonInvalidTargets, olmcore.RefOf(g), "spec.targetNamespaces",
			"TargetNamespaces cannot contain NamespaceAll: %v", g.Spec.TargetNamespaces)}
		return res
	}
	if selectsByLabel(g) && !in.Namespaces.Complete {
		res.Diagnostics = []olmcore.Diagnostic{olmcore.Diagnose(olmcore.Warning, ReasonNotObserved, olmcore.RefOf(g), "",
			"the list of Namespaces was not read, so nothing is decided")}
		res.RequeueAfter = unreadPace
		return res
	}
	account := accountOf(in)
	account.say(in, &res)
	sayUnread(in, &res)
	res.Actions = append(res.Actions, account.label(in)...)
	if status, changed := desiredStatus(in, account); changed {
		after := g.DeepCopy()
		after.Status = status
		res.Actions = append(res.Actions, olmcore.UpdateStatusOf(g, after, olmcore.Cause{
			Reason: ReasonStatusChanged, Message: "the targets, the ServiceAccount or the conditions changed",
		}))
		if account.isMissing() {
			res.Diagnostics = append(res.Diagnostics, olmcore.Diagnose(olmcore.Warning, ReasonServiceAccountMissing, olmcore.RefOf(g), "spec.serviceAccountName",
				"%s", account.missingMessage()))
		}
	} else if apis, pruned := listedAPIs(in); pruned {
		res.Actions = append(res.Actions, group.List(g, apis))
	}
	res.Actions = append(res.Actions, namespaceLabels(in)...)
	res.Actions = append(res.Actions, clusterRoles(in)...)
	return res
}

// sayUnread names the lists that were not read and what stays as it is for want of them.
func sayUnread(in *Input, res *olmcore.Result) {
	var lists []string
	for _, list := range [...]struct {
		complete bool
		decides  string
	}{
		{in.Siblings.Complete, "OperatorGroups (the condition for several in one namespace)"},
		{in.Namespaces.Complete, "Namespaces (their labels)"},
		{in.ClusterServiceVersions.Complete, "ClusterServiceVersions (provided APIs)"},
		{in.ClusterRoles.Complete, "ClusterRoles (those that aggregate the rights on provided APIs)"},
	} {
		if !list.complete {
			lists = append(lists, list.decides)
		}
	}
	if len(lists) > 0 {
		res.Diagnostics = append(res.Diagnostics, olmcore.Diagnose(olmcore.Warning, ReasonNotObserved, olmcore.RefOf(in.OperatorGroup), "",
			"what these lists would decide stays as it is, as they were not read: %s", strings.Join(lists, ", ")))
		res.Requeue(unreadPace)
	}
}

// members are the original ClusterServiceVersions of the group's namespace.
func members(in *Input) []*v1alpha1.ClusterServiceVersion {
	return slices.DeleteFunc(slices.Clone(in.ClusterServiceVersions.Items), func(c *v1alpha1.ClusterServiceVersion) bool {
		return c.Namespace != in.OperatorGroup.Namespace || c.IsCopied()
	})
}

// listedAPIs returns the APIs of the annotation without those that no operator of the
// namespace provides, and whether that is a change. While a ClusterServiceVersion is
// about to add an API it waits.
//
// Source: operator-lifecycle-manager pkg/controller/operators/olm/operatorgroup.go, pruneProvidedAPIs.
// Differs: those whose operator was stopped for its APIs provide nothing.
func listedAPIs(in *Input) (kept []group.API, pruned bool) {
	listed := group.Parse(group.Annotation(in.OperatorGroup))
	if !in.ClusterServiceVersions.Complete || in.OperatorGroup.Spec.StaticProvidedAPIs {
		return listed, false
	}
	isListed, isProvided := map[group.API]bool{}, map[group.API]bool{}
	for _, a := range listed {
		isListed[a] = true
	}
	for _, c := range members(in) {
		if group.IsShutOut(c) {
			continue
		}
		early := c.Status.Phase == v1alpha1.CSVPhaseNone || c.Status.Phase == v1alpha1.CSVPhasePending
		for _, a := range group.Provided(c) {
			if early && c.DeletionTimestamp == nil && !isListed[a] {
				return listed, false
			}
			isProvided[a] = true
		}
	}
	kept = slices.DeleteFunc(slices.Clone(listed), func(a group.API) bool { return !isProvided[a] })
	return kept, len(kept) < len(listed)
}
