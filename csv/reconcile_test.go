// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/olmcore"
)

// row is one case of a table: the status a CSV starts with, what is different from an operator whose requirements are
// met, and the whole Result.
type row struct {
	from   recorded
	change func(in *csv.Input)
	want   func(in csv.Input) olmcore.Result
}

// recorded is a status.
type recorded struct {
	phase   phaseName
	reason  reason
	message string
}

func is(phase phaseName, why reason, message string) recorded { return recorded{phase, why, message} }

var (
	brandNew = recorded{}
	unjudged = is(pending, "RequirementsUnknown", unchecked)
	running  = is(succeeded, "InstallSucceeded", wellDone)
)

func run(t *testing.T, rows map[string]row) {
	t.Helper()
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			in := input(r.from.phase, r.from.reason, r.from.message)
			if r.change != nil {
				r.change(&in)
			}
			check(t, in, r.want(in))
		})
	}
}

// hourOn is the pause an hour after a phase began: looks are 5 s, 15 s, 35 s, ... 615 s, and then every five minutes
// after it.
const hourOn = 15 * time.Second

func nothing(csv.Input) olmcore.Result { return olmcore.Result{} }

func to(phase phaseName, why reason, message string) func(csv.Input) olmcore.Result {
	return func(in csv.Input) olmcore.Result { return moves(in, phase, why, message) }
}

func toReporting(phase phaseName, why reason, message string, change func([]v1alpha1.RequirementStatus)) func(csv.Input) olmcore.Result {
	return func(in csv.Input) olmcore.Result {
		report := metReport()
		if change != nil {
			change(report)
		}
		return reporting(moves(in, phase, why, message), report...)
	}
}

func after(d time.Duration, want func(csv.Input) olmcore.Result) func(csv.Input) olmcore.Result {
	return func(in csv.Input) olmcore.Result { return requeue(want(in), d) }
}

// successorOf adds a version that replaces the CSV.
func successorOf(in *csv.Input, phase phaseName) *v1alpha1.ClusterServiceVersion {
	s := operator("cool.v2", 2)
	s.Spec.Replaces = in.ClusterServiceVersion.Name
	hold(s, phase, "SomeReason", "", time.Minute)
	in.Neighbours.Items = append(in.Neighbours.Items, s)
	return s
}

// predecessorOf adds a version that the CSV replaces.
func predecessorOf(in *csv.Input, phase phaseName) *v1alpha1.ClusterServiceVersion {
	p := operator("cool.v0", 0)
	in.ClusterServiceVersion.Spec.Replaces = p.Name
	hold(p, phase, "SomeReason", "", time.Minute)
	in.Neighbours.Items = append(in.Neighbours.Items, p)
	return p
}

func withSuccessor(phase phaseName) func(in *csv.Input) {
	return func(in *csv.Input) { successorOf(in, phase) }
}

// OLM's cases: None with an owned CRD becomes Pending; Pending without its CRD stays Pending; another version owns the
// CRD: OwnerConflict; that one stays Succeeded; Pending with its CRD: InstallReady; who is replaced: found, not found,
// not read; no verbs: nothing to ask, and an invalid rule; webhooks: repeated names, all groups, OLM's group and
// configurations are refused.
func TestNoneAndPending(t *testing.T) {

	unmet := func(r []v1alpha1.RequirementStatus) {
		r[0].Status, r[0].Message, r[0].UUID = "NotPresent", "CRD is not present", ""
	}
	run(t, map[string]row{
		"a new CSV becomes Pending":                 {brandNew, nil, to(pending, "RequirementsUnknown", "requirements not yet checked")},
		"Unknown counts as new":                     {is(v1alpha1.CSVPhaseUnknown, "", ""), nil, to(pending, "RequirementsUnknown", "requirements not yet checked")},
		"a phase that does not exist counts as new": {is("Sleeping", "", ""), nil, to(pending, "RequirementsUnknown", "requirements not yet checked")},
		"everything is met":                         {unjudged, nil, toReporting(installReady, "AllRequirementsMet", "all requirements found, attempting install", nil)},
		"a CRD is missing": {unjudged, func(in *csv.Input) { in.CustomResourceDefinitions.Items = nil },
			after(hourOn, toReporting(pending, "RequirementsNotMet", "one or more requirements couldn't be found", unmet))},
		"only the report changed": {is(pending, "RequirementsNotMet", "one or more requirements couldn't be found"), func(in *csv.Input) { in.CustomResourceDefinitions.Items = nil },
			after(hourOn, toReporting(pending, "RequirementsNotMet", "one or more requirements couldn't be found", unmet))},
		"nothing changed": {is(pending, "RequirementsNotMet", "one or more requirements couldn't be found"), func(in *csv.Input) {
			in.CustomResourceDefinitions.Items = nil
			in.ClusterServiceVersion.Status.RequirementStatus = metReport()
			unmet(in.ClusterServiceVersion.Status.RequirementStatus)
		}, after(hourOn, nothing)},
		"the predecessor is not upgradeable": {unjudged, func(in *csv.Input) {
			predecessorOf(in, replacing)
			said := &operatorsv2.OperatorCondition{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cool.v0"}}
			in.OperatorConditions = olmcore.Found(said)
			said.Status.Conditions = []metav1.Condition{{Type: "Upgradeable", Status: "False", Message: "migrating"}}
		}, after(30*time.Second, to(pending, "OperatorConditionNotUpgradeable", "operator is not upgradeable: the operator is not upgradeable: migrating"))},
		"a rule has no verbs": {unjudged, func(in *csv.Input) {
			in.ClusterServiceVersion.Spec.InstallStrategy.StrategySpec.Permissions[0].Rules[0].Verbs = nil
		}, to(failed, "InvalidInstallStrategy", "install strategy invalid: rule invalid: policy rule must have at least one verb")},
		"a rule mixes resources and URLs": {unjudged, func(in *csv.Input) {
			in.ClusterServiceVersion.Spec.InstallStrategy.StrategySpec.Permissions[0].Rules[0].NonResourceURLs = []string{"/x"}
		}, to(failed, "InvalidInstallStrategy", "install strategy invalid: rule invalid: rule cannot apply to both regular resources and non-resource URLs")},
		"the strategy is unknown": {unjudged, func(in *csv.Input) {
			in.ClusterServiceVersion.Spec.InstallStrategy.StrategyName = "helm"
		}, to(failed, "InvalidInstallStrategy", "install strategy invalid: unrecognized install strategy")},
		"two webhooks have one name": {unjudged, func(in *csv.Input) {
			in.ClusterServiceVersion.Spec.WebhookDefinitions = []v1alpha1.WebhookDescription{{GenerateName: "x"}, {GenerateName: "x"}}
		}, toReporting(failed, "InvalidWebhookDescription", "CSV contains repeated WebhookDescription name", nil)},
		"a webhook takes all groups": {unjudged, func(in *csv.Input) {
			in.ClusterServiceVersion.Spec.WebhookDefinitions = []v1alpha1.WebhookDescription{{GenerateName: "x", Rules: []admissionregistrationv1.RuleWithOperations{
				{Rule: admissionregistrationv1.Rule{APIGroups: []string{"*"}}},
			}}}
		}, toReporting(failed, "InvalidWebhookDescription", "webhook rules cannot include all groups", nil)},
		"an unrelated CSV owns the CRD": {unjudged, func(in *csv.Input) {
			in.Neighbours.Items = append(in.Neighbours.Items, operator("rival.v1", 1))
		}, toReporting(failed, "OwnerConflict", "conflicting CRD owner in namespace", nil)},
		"a Deployment belongs to nobody": {unjudged, func(in *csv.Input) {
			deploy(t, in)
			in.Deployments.Items[0].Labels, in.Deployments.Items[0].OwnerReferences = nil, nil
		}, toReporting(failed, "OwnerConflict", "deployment cool exists and is not managed by an operator", nil)},
		"a Deployment belongs to another operator": {unjudged, func(in *csv.Input) {
			deploy(t, in)
			in.Deployments.Items[0].Labels["olm.owner"] = "other.v1"
			other := operator("other.v1", 1)
			other.Spec.CustomResourceDefinitions.Owned = nil
			in.Neighbours.Items = append(in.Neighbours.Items, other)
		}, toReporting(failed, "OwnerConflict", "deployment cool is owned by ClusterServiceVersion other.v1", nil)},
		"a Deployment of an operator that is gone may be taken": {unjudged, func(in *csv.Input) {
			deploy(t, in)
			in.Deployments.Items[0].Labels["olm.owner"] = "gone.v1"
		}, toReporting(installReady, "AllRequirementsMet", "all requirements found, attempting install", nil)},
		"the predecessor has not moved on": {unjudged, func(in *csv.Input) { predecessorOf(in, failed) }, after(hourOn, toReporting(pending, "AllRequirementsMet",
			"requirements met; waiting for cool.v0 to be replaced (it is Failed/SomeReason)", nil))},
		"the predecessor is Replacing": {unjudged, func(in *csv.Input) { predecessorOf(in, replacing) },
			toReporting(installReady, "AllRequirementsMet", "all requirements found, attempting install", nil)},
		"not by one that is being deleted": {unjudged, func(in *csv.Input) { successorOf(in, installReady).DeletionTimestamp = ago(0) },
			toReporting(installReady, "AllRequirementsMet", "all requirements found, attempting install", nil)},
		"a successor has begun to install": {unjudged, withSuccessor(installing), to(replacing, "BeingReplaced", "being replaced by csv: cool.v2")},
	})

}

// OLM's cases: Succeeded, its mode no longer supported: Failed; Succeeded, the group gone: Failed; Succeeded, a second
// group: Failed; Succeeded, other targets: annotations first, the phase stays.
func TestGates(t *testing.T) {
	c := func(in *csv.Input) *v1alpha1.ClusterServiceVersion { return in.ClusterServiceVersion }
	metadata := func(why, message string, change func(*v1alpha1.ClusterServiceVersion)) func(csv.Input) olmcore.Result {
		return func(in csv.Input) olmcore.Result {
			next := in.ClusterServiceVersion.DeepCopy()
			change(next)
			return olmcore.Result{Actions: []olmcore.Action{olmcore.UpdateOf(in.ClusterServiceVersion, next, olmcore.Cause{Reason: why, Message: message})}}
		}
	}
	finalize := metadata(csv.ReasonFinalizerMissing, "cleanup must run before this ClusterServiceVersion goes",
		func(c *v1alpha1.ClusterServiceVersion) { c.Finalizers = []string{cleanup.Finalizer} })
	run(t, map[string]row{
		"the finalizer comes first": {brandNew, func(in *csv.Input) { c(in).Finalizers = nil }, finalize},
		"a copy is left alone":      {is(failed, "", ""), func(in *csv.Input) { c(in).Labels["olm.copiedFrom"] = "other"; c(in).Finalizers = nil }, nothing},
		"a copy loses the finalizer": {brandNew, func(in *csv.Input) { c(in).Labels["olm.copiedFrom"] = "other" }, metadata(cleanup.ReasonCopyReleased, "a copy has nothing to clean up",
			func(c *v1alpha1.ClusterServiceVersion) { c.Finalizers = []string{} })},
		"a CSV without permissions is frozen": {is(failed, "InstallComponentFailedNoRetry", ""), func(in *csv.Input) { c(in).Status.LastTransitionTime = ago(20 * time.Second) },
			after(40*time.Second, nothing)},
		"it is tried again in the end": {is(failed, "InstallComponentFailedNoRetry", ""), nil,
			to(pending, "DetectedClusterChange", "trying again, as permissions may have been granted unnoticed")},
		"a CRD name has no group": {brandNew, func(in *csv.Input) { c(in).Spec.CustomResourceDefinitions.Owned[0].Name = "cools" },
			to(failed, "InvalidInstallStrategy", `invalid CRD name "cools": want <plural>.<group>`)},
		"a CRD is described without a kind": {brandNew, func(in *csv.Input) { c(in).Spec.CustomResourceDefinitions.Owned[0].Kind = "" },
			to(failed, "InvalidInstallStrategy", "CRD cools.example.com is described without a kind")},
		"the name is too long for a label": {brandNew, func(in *csv.Input) {
			c(in).Name = "a234567890123456789012345678901234567890123456789012345678901234"
		}, to(failed, "InvalidInstallStrategy",
			`name "a234567890123456789012345678901234567890123456789012345678901234" has 64 characters; at most 63 are possible because it is used as a label value`)},
		"a Deployment is listed twice": {brandNew, func(in *csv.Input) {
			s := &c(in).Spec.InstallStrategy.StrategySpec
			s.DeploymentSpecs = append(s.DeploymentSpecs, s.DeploymentSpecs[0])
		}, to(failed, "InvalidInstallStrategy", `deployment "cool" listed twice`)},
		"a Deployment has no selector": {brandNew, func(in *csv.Input) {
			c(in).Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Selector = nil
		}, to(failed, "InvalidInstallStrategy", `deployment "cool" has no selector`)},
		"a selector misses its template": {brandNew, func(in *csv.Input) {
			c(in).Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Labels = nil
		}, to(failed, "InvalidInstallStrategy", `deployment "cool": the selector does not match the labels of its template`)},
		"a Deployment has no containers": {brandNew, func(in *csv.Input) {
			c(in).Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers = nil
		}, to(failed, "InvalidInstallStrategy", `deployment "cool" has no containers`)},
		"a permission names no ServiceAccount": {brandNew, func(in *csv.Input) {
			c(in).Spec.InstallStrategy.StrategySpec.Permissions[0].ServiceAccountName = ""
		}, to(failed, "InvalidInstallStrategy", "permissions[0]: serviceAccountName is empty")},
		"API labels go along with another write": {brandNew, func(in *csv.Input) {
			c(in).Labels = map[string]string{"olm.api.1": "provided", "kept": "yes"}
			c(in).Finalizers = nil
		}, metadata(csv.ReasonFinalizerMissing, "cleanup must run before this ClusterServiceVersion goes",
			func(c *v1alpha1.ClusterServiceVersion) {
				c.Finalizers = []string{cleanup.Finalizer}
				c.Labels = map[string]string{"kept": "yes", "olm.api.c38844a2fa17abf0": "provided"}
			})},
		"API labels are not written for themselves": {running, func(in *csv.Input) {
			deploy(t, in)
			c(in).Labels = nil
		}, nothing},
		"there is no OperatorGroup": {is(succeeded, "", ""), func(in *csv.Input) { in.OperatorGroups.Items = nil },
			after(5*time.Second, to(failed, "NoOperatorGroup", "csv in namespace with no operatorgroups"))},
		"nothing is written twice": {is(failed, "NoOperatorGroup", "csv in namespace with no operatorgroups"), func(in *csv.Input) { in.OperatorGroups.Items = nil },
			after(hourOn, nothing)},
		"there are two OperatorGroups": {is(succeeded, "", ""), func(in *csv.Input) {
			second := group()
			second.Name, second.UID = "second", "second"
			in.OperatorGroups.Items = append(in.OperatorGroups.Items, second)
		}, after(5*time.Second, to(failed, "TooManyOperatorGroups", "csv created in namespace with multiple operatorgroups, can't pick one automatically"))},
		"annotations follow the group": {is(succeeded, "", ""), func(in *csv.Input) {
			in.OperatorGroups.Items[0].Status.Namespaces = []string{"ns", "a"}
		}, metadata(csv.ReasonGroupChanged, "the annotations do not say what OperatorGroup group does",
			func(c *v1alpha1.ClusterServiceVersion) { c.Annotations["olm.targetNamespaces"] = "a,ns" })},
		"a group that selects nothing takes the annotation away": {is(succeeded, "", ""), func(in *csv.Input) { in.OperatorGroups.Items[0].Status.Namespaces = nil }, metadata(csv.ReasonGroupChanged, "the annotations do not say what OperatorGroup group does",
			func(c *v1alpha1.ClusterServiceVersion) { delete(c.Annotations, "olm.targetNamespaces") })},
		"a group that selects nothing installs nothing": {is(succeeded, "", ""), func(in *csv.Input) {
			in.OperatorGroups.Items[0].Status.Namespaces = nil
			delete(c(in).Annotations, "olm.targetNamespaces")
		}, to(failed, "NoTargetNamespaces", "no targetNamespaces are matched operatorgroups namespace selection")},
		"a group without status is waited for": {is(pending, "RequirementsUnknown", ""), func(in *csv.Input) {
			in.OperatorGroups.Items[0].Status = operatorsv1.OperatorGroupStatus{}
		}, func(in csv.Input) olmcore.Result {
			return olmcore.Result{RequeueAfter: 5 * time.Second, Diagnostics: []olmcore.Diagnostic{{
				Severity: olmcore.Info, Reason: csv.ReasonGroupNotReady, Target: olmcore.RefOf(in.OperatorGroups.Items[0]).Unversioned(), Path: "status.namespaces",
				Message: "the target namespaces of OperatorGroup group have not been computed yet",
			}}}
		}},
		"an install mode is listed twice": {brandNew, func(in *csv.Input) {
			c(in).Spec.InstallModes = []v1alpha1.InstallMode{{Type: "OwnNamespace", Supported: true}, {Type: "OwnNamespace"}}
		}, to(failed, "InvalidInstallModes", "InstallMode list contains duplicates, cannot make set: [{OwnNamespace true} {OwnNamespace false}]")},
		"the targets are not supported": {is(succeeded, "", ""), func(in *csv.Input) { c(in).Spec.InstallModes = nil },
			to(failed, "UnsupportedOperatorGroup", "OwnNamespace InstallModeType not supported, cannot configure to watch own namespace")},
		"the group's gates do not hold a CSV that is being replaced": {is(replacing, "BeingReplaced", ""), func(in *csv.Input) { in.OperatorGroups.Items = nil; successorOf(in, succeeded) },
			to(deleting, "Replaced", "has been replaced by a newer ClusterServiceVersion that has successfully installed.")},
		"what was not read is not absent": {is(succeeded, "", ""), func(in *csv.Input) { in.OperatorGroups = olmcore.Observed[*operatorsv1.OperatorGroup]{} }, func(in csv.Input) olmcore.Result {
			return olmcore.Result{RequeueAfter: 5 * time.Second, Diagnostics: []olmcore.Diagnostic{{
				Severity: olmcore.Warning, Reason: csv.ReasonNotObserved, Target: olmcore.RefOf(in.ClusterServiceVersion).Unversioned(),
				Message: "the list of OperatorGroups was not read, so nothing is decided",
			}}}
		}},
	})
}

// OLM's cases: InstallReady with its Deployments: Installing; Installing, no template annotations: InstallReady; past
// its progress deadline: an error; Available: ready; a generation that was not observed: waiting; old replicas: waiting
// for them; no condition Available: waiting, with its name; the hash unchanged: installed.
func TestInstallReadyAndInstalling(t *testing.T) {
	const ready = "all requirements found, attempting install"
	outcome := func(class olmcore.ErrorClass, message string) func(in *csv.Input) {
		return func(in *csv.Input) {
			in.LastRun = olmcore.LastResults{{Group: "apps", Kind: "Deployment", Namespace: "ns", Name: "cool"}: {
				Class: class, Message: message, Count: 1, First: now, Last: now,
			}}
		}
	}
	deployed := func(in *csv.Input) { deploy(t, in) }
	ill := func(change func(in *csv.Input)) func(in *csv.Input) {
		return func(in *csv.Input) { deploy(t, in); change(in) }
	}
	run(t, map[string]row{
		"the group's account may not write Deployments": {is(installReady, "AllRequirementsMet", ready), outcome(olmcore.Forbidden, "no"),
			to(failed, "InstallComponentFailedNoRetry", "install strategy failed: no")},
		"the API server refuses a Deployment": {is(installReady, "AllRequirementsMet", ready), outcome(olmcore.Invalid, "bad"),
			after(5*time.Second, to(failed, "InstallComponentFailed", "install strategy failed: bad (attempt 1, next retry in 5s)"))},
		"the Deployments are there": {is(installReady, "AllRequirementsMet", ready), deployed,
			to(installing, "InstallSucceeded", "waiting for install components to report healthy")},
		"the group's account is missing": {is(installReady, "AllRequirementsMet", ready), func(in *csv.Input) { in.OperatorGroups.Items[0].Spec.ServiceAccountName = "limited" },
			after(10*time.Second, to(installReady, "AllRequirementsMet", "waiting for OperatorGroup service account limited"))},
		"all Deployments are well": {is(installing, "InstallSucceeded", ""), deployed, to(succeeded, "InstallSucceeded", "install strategy completed with no errors")},
		"it took too long": {is(installing, "InstallWaiting", ""), ill(func(in *csv.Input) { in.Deployments.Items[0].Status.Conditions = nil }),
			to(failed, "InstallCheckFailed", "install timeout")},
		"a Deployment is not available yet": {is(installing, "InstallSucceeded", ""), ill(func(in *csv.Input) {
			in.Deployments.Items[0].Status.Conditions = nil
			in.ClusterServiceVersion.Status.LastTransitionTime = ago(time.Minute)
		}), after(4*time.Minute, to(installing, "InstallWaiting",
			`installing: waiting for deployment cool to become ready: deployment "cool" not available: missing condition "Available"`))},
		"the Deployment's controller is behind": {is(installing, "InstallSucceeded", ""), ill(func(in *csv.Input) {
			in.Deployments.Items[0].Generation = 2
			in.ClusterServiceVersion.Status.LastTransitionTime = ago(0)
		}), after(5*time.Minute, to(installing, "InstallWaiting",
			`installing: waiting for deployment cool to become ready: waiting for spec update of deployment "cool" to be observed...`))},
		"old replicas are still there": {is(installing, "InstallSucceeded", ""), ill(func(in *csv.Input) {
			in.Deployments.Items[0].Status.Replicas = 3
			in.ClusterServiceVersion.Status.LastTransitionTime = ago(0)
		}), after(5*time.Minute, to(installing, "InstallWaiting",
			`installing: waiting for deployment cool to become ready: deployment "cool" waiting for 2 outdated replica(s) to be terminated`))},
		"the progress deadline is over": {is(installing, "InstallWaiting", ""), ill(func(in *csv.Input) {
			in.Deployments.Items[0].Status.Conditions[0].Type = "Progressing"
			in.Deployments.Items[0].Status.Conditions[0].Reason = "ProgressDeadlineExceeded"
		}), to(failed, "InstallCheckFailed", `install failed: deployment cool not ready before timeout: deployment "cool" exceeded its progress deadline`)},
		"the hash label is gone": {is(installing, "InstallWaiting", ""), ill(func(in *csv.Input) { delete(in.Deployments.Items[0].Labels, "olm.deployment-spec-hash") }),
			to(installReady, "InstallWaiting", "installing: deployment cool doesn't have a spec hash, update it")},
		"the template has no annotations": {is(installing, "InstallWaiting", ""), ill(func(in *csv.Input) { in.Deployments.Items[0].Spec.Template.Annotations = nil }),
			to(installReady, "InstallWaiting", "installing: no annotations found on deployment")},
		"an annotation is missing": {is(installing, "InstallWaiting", ""), ill(func(in *csv.Input) { in.ClusterServiceVersion.Annotations["a"] = "b" }),
			to(installReady, "InstallWaiting", "installing: annotations on deployment does not contain expected key: a")},
		"an annotation is another": {is(installing, "InstallWaiting", ""), ill(func(in *csv.Input) { in.Deployments.Items[0].Spec.Template.Annotations["olm.operatorGroup"] = "x" }),
			to(installReady, "InstallWaiting", "installing: unexpected annotation on deployment. Expected olm.operatorGroup:group, found olm.operatorGroup:x")},
		"a Deployment is missing": {is(installing, "InstallSucceeded", ""), func(in *csv.Input) { in.ClusterServiceVersion.Status.LastTransitionTime = ago(0) },
			after(5*time.Minute, to(installing, "InstallWaiting", "installing: missing deployment with name=cool"))},
		"an Installing CSV without a time starts to wait now": {is(installing, "InstallWaiting", "installing: missing deployment with name=cool"), func(in *csv.Input) { in.ClusterServiceVersion.Status.LastTransitionTime = nil }, func(in csv.Input) olmcore.Result {
			res := requeue(moves(in, installing, "InstallWaiting", "installing: missing deployment with name=cool"), 5*time.Minute)
			after, _ := olmcore.StatusOf[*v1alpha1.ClusterServiceVersion](res.Actions)
			after.Status.LastTransitionTime = ago(0)
			return res
		}},
	})
}

// OLM's cases: Failed without its Deployment: NeedsReinstall; Failed without its CRD: RequirementsNotMet;
// NoOperatorGroup, cured: Pending; Succeeded, the CRD gone: Failed; a Succeeded, b new and replacing it: Replacing and
// Pending; Failed by a conflict that is over: Pending; Failed by a static group that fits now: Pending; fail-forward:
// Failed with a successor becomes Replacing; who replaces: found, not found, not read.
func TestSucceededAndFailed(t *testing.T) {
	const well = "install strategy completed with no errors"
	deployed := func(in *csv.Input) { deploy(t, in) }
	ill := func(change func(in *csv.Input)) func(in *csv.Input) {
		return func(in *csv.Input) { deploy(t, in); change(in) }
	}
	noCRD := func(r []v1alpha1.RequirementStatus) {
		r[0].Status, r[0].Message, r[0].UUID = "NotPresent", "CRD is not present", ""
	}
	lost := func(in *csv.Input) { in.CustomResourceDefinitions.Items = nil }
	const waiting = `installing: waiting for deployment cool to become ready: deployment "cool" not available: missing condition "Available"`
	run(t, map[string]row{
		"a healthy operator is left alone":                     {running, deployed, nothing},
		"a newer version appears":                              {running, withSuccessor(none), to(replacing, "BeingReplaced", "being replaced by csv: cool.v2")},
		"a newer version that is being deleted does not count": {running, ill(func(in *csv.Input) { successorOf(in, pending).DeletionTimestamp = ago(time.Second) }), nothing},
		"a CRD is gone":                                        {running, ill(lost), toReporting(failed, "RequirementsNotMet", "requirements no longer met", noCRD)},
		"a Deployment is unavailable":                          {running, ill(func(in *csv.Input) { in.Deployments.Items[0].Status.Conditions = nil }), to(failed, "ComponentUnhealthy", waiting)},
		"a Deployment is gone":                                 {running, nil, to(failed, "ComponentUnhealthy", "installing: missing deployment with name=cool")},
		"the strategy changed": {running, ill(func(in *csv.Input) {
			in.ClusterServiceVersion.Generation = 2
			in.Deployments.Items[0].Labels["olm.deployment-spec-hash"] = "old"
		}), to(installReady, "ComponentUnhealthy", "installing: deployment changed old hash=old, new hash="+goldenHash)},
		"fail-forward lets a failed version go": {is(failed, "InstallCheckFailed", ""), func(in *csv.Input) {
			in.OperatorGroups.Items[0].Spec.UpgradeStrategy = operatorsv1.UpgradeStrategyUnsafeFailForward
			successorOf(in, pending)
		}, to(replacing, "BeingReplaced", "Fail Forward is enabled, allowing Failed csv to be replaced by csv: cool.v2")},
		"the upgrade itself took the old CRD version": {is(failed, "RequirementsNotMet", "requirements no longer met"), func(in *csv.Input) {
			s := &in.ClusterServiceVersion.Status
			s.Conditions = append([]v1alpha1.ClusterServiceVersionCondition{{Phase: succeeded, Reason: "InstallSucceeded"}}, s.Conditions...)
			in.CustomResourceDefinitions.Items[0].Spec.Versions[0].Served = false
			successorOf(in, pending)
		}, toReporting(replacing, "BeingReplaced", "being replaced by csv: cool.v2", func(r []v1alpha1.RequirementStatus) {
			r[0].Status, r[0].Message, r[0].UUID = "NotPresent", "CRD version not served", ""
		})},
		"the group fits again": {is(failed, "NoOperatorGroup", ""), nil, to(pending, "RequirementsUnknown", "InstallModes now support target namespaces")},
		"the conflict is over": {is(failed, "InterOperatorGroupOwnerConflict", ""), nil,
			to(pending, "RequirementsUnknown", "OperatorGroup no longer intersecting with conflicting owner")},
		"the static group fits": {is(failed, "CannotModifyStaticOperatorGroupProvidedAPIs", ""), nil,
			to(pending, "RequirementsUnknown", "static OperatorGroup and intersecting groups now support providedAPIs")},
		"requirements are unmet": {is(failed, "RequirementsNotMet", ""), func(in *csv.Input) { lost(in) },
			toReporting(pending, "RequirementsNotMet", "requirements not met", noCRD)},
		"a conflict holds while it lasts": {is(failed, "OwnerConflict", "conflicting CRD owner in namespace"), func(in *csv.Input) {
			in.Neighbours.Items = append(in.Neighbours.Items, operator("rival.v1", 1))
		}, after(hourOn, nothing)},
		"a bad rule holds without another write": {is(failed, "InvalidInstallStrategy", "install strategy invalid: rule invalid: policy rule must have at least one verb"), func(in *csv.Input) {
			in.ClusterServiceVersion.Spec.InstallStrategy.StrategySpec.Permissions[0].Rules[0].Verbs = nil
		}, nothing},
		"it is well again":         {is(failed, "ComponentUnhealthy", ""), deployed, to(succeeded, "InstallSucceeded", well)},
		"a missing Deployment":     {is(failed, "ComponentUnhealthy", ""), nil, to(pending, "NeedsReinstall", "installing: missing deployment with name=cool")},
		"waiting needs no install": {is(failed, "ComponentUnhealthy", waiting), ill(func(in *csv.Input) { in.Deployments.Items[0].Status.Conditions = nil }), nothing},
		"the pause before the next try": {is(failed, "InstallComponentFailed", ""), func(in *csv.Input) {
			in.ClusterServiceVersion.Status.LastTransitionTime = ago(2 * time.Second)
		}, after(3*time.Second, nothing)},
		"an old version is not revived": {is(failed, "NoOperatorGroup", ""), withSuccessor(succeeded), to(replacing, "BeingReplaced", "being replaced by csv: cool.v2")},
	})
}

// OLM's cases: a Replacing, b Succeeded: a is Deleting; a Deleting: it is deleted; a and b Replacing, c Succeeded: OLM
// is stuck, here both go; Replacing by itself, with either strategy, harms nothing; a self reference is no operator's
// predecessor or successor; the chain of a line is all of it; a replacement that is not there is no replacement.
func TestReplacingAndDeleting(t *testing.T) {
	const done = "has been replaced by a newer ClusterServiceVersion that has successfully installed."
	run(t, map[string]row{
		"the oldest goes first":      {is(replacing, "BeingReplaced", ""), func(in *csv.Input) { predecessorOf(in, replacing); successorOf(in, succeeded) }, nothing},
		"the successor is Succeeded": {is(replacing, "BeingReplaced", ""), withSuccessor(succeeded), to(deleting, "Replaced", done)},
		"a later successor is Succeeded": {is(replacing, "BeingReplaced", ""), func(in *csv.Input) {
			successorOf(in, replacing)
			last := operator("cool.v3", 3)
			last.Spec.Replaces = "cool.v2"
			hold(last, succeeded, "InstallSucceeded", "", time.Minute)
			in.Neighbours.Items = append(in.Neighbours.Items, last)
		}, to(deleting, "Replaced", done)},
		"the successor is busy": {is(replacing, "BeingReplaced", ""), withSuccessor(installing), after(hourOn, nothing)},
		"the successor is gone for a moment": {is(replacing, "BeingReplaced", ""), func(in *csv.Input) {
			in.ClusterServiceVersion.Status.LastTransitionTime = ago(10 * time.Second)
		}, after(20*time.Second, nothing)},
		"the successor stays away": {is(replacing, "BeingReplaced", ""), nil,
			to(pending, "NeedsReinstall", "replacement of cool.v1 disappeared; verifying installation again")},
		"a replaced version is deleted": {is(deleting, "Replaced", ""), nil, func(in csv.Input) olmcore.Result {
			return olmcore.Result{Actions: []olmcore.Action{olmcore.DeleteOf(in.ClusterServiceVersion, olmcore.Cause{
				Reason: csv.ReasonReplaced, Message: "a newer version has been installed",
			})}}
		}},
		"a version that replaces itself replaces nothing": {is(replacing, "BeingReplaced", ""), func(in *csv.Input) { in.ClusterServiceVersion.Spec.Replaces = "cool.v1" },
			to(pending, "NeedsReinstall", "replacement of cool.v1 disappeared; verifying installation again")},
		"in a cycle the older version goes": {is(replacing, "BeingReplaced", ""), func(in *csv.Input) {
			in.ClusterServiceVersion.Spec.Replaces = "cool.v2"
			successorOf(in, succeeded)
		}, func(in csv.Input) olmcore.Result {
			res := moves(in, deleting, "Replaced", done)
			res.Diagnostics = []olmcore.Diagnostic{{
				Severity: olmcore.Warning, Reason: csv.ReasonReplacesCycle, Target: olmcore.RefOf(in.ClusterServiceVersion).Unversioned(), Path: "spec.replaces",
				Message: "following spec.replaces from cool.v1 leads back to it; the newest version counts as the head",
			}}
			return res
		}},
	})

}
