// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/internal/csvtest"
	"github.com/olmcore/olm/olmcore"
)

// row is one case of a table: the recorded status of a CSV, what differs from an operator whose requirements are met,
// and the complete Result.
type row struct {
	from   recorded
	change func(in *csv.Input)
	want   func(in csv.Input) olmcore.Result
}

// recorded is the recorded status of a CSV.
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

// hourOn is the wait after a phase has lasted for an hour. The checks are 5 s, 15 s, 35 s, ... 615 s after the phase
// began, and then every five minutes.
const hourOn = 15 * time.Second

func notRead(in csv.Input, list string) olmcore.Result {
	return olmcore.Result{RequeueAfter: 5 * time.Second, Diagnostics: []olmcore.Diagnostic{{
		Severity: olmcore.Warning, Reason: csv.ReasonNotObserved, Target: olmcore.RefOf(in.ClusterServiceVersion).Unversioned(),
		Message: "the list of " + list + " was not read, so nothing is decided",
	}}}
}

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
// CRD: OwnerConflict; the other version stays Succeeded; Pending with its CRD: InstallReady; the predecessor is found,
// not found, or not read; a rule without verbs is invalid; webhooks: repeated names, all groups, OLM's group and
// configurations are refused.
func TestTransitionsFromNoneAndPending(t *testing.T) {
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
		"the predecessor's condition was not read": {unjudged, func(in *csv.Input) { predecessorOf(in, replacing); unread(&in.OperatorConditions) },
			func(in csv.Input) olmcore.Result { return notRead(in, "OperatorConditions") }},
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
		"a Deployment has no owner": {unjudged, func(in *csv.Input) {
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
		"a Deployment of a deleted operator is taken over": {unjudged, func(in *csv.Input) {
			deploy(t, in)
			in.Deployments.Items[0].Labels["olm.owner"] = "gone.v1"
		}, toReporting(installReady, "AllRequirementsMet", "all requirements found, attempting install", nil)},
		"the predecessor is not Replacing yet": {unjudged, func(in *csv.Input) { predecessorOf(in, failed) }, after(hourOn, toReporting(pending, "AllRequirementsMet",
			"requirements met; waiting for cool.v0 to be replaced (it is Failed/SomeReason)", nil))},
		"the predecessor is Replacing": {unjudged, func(in *csv.Input) { predecessorOf(in, replacing) },
			toReporting(installReady, "AllRequirementsMet", "all requirements found, attempting install", nil)},
		"a successor that is being deleted does not count": {
			unjudged, func(in *csv.Input) { successorOf(in, installReady).DeletionTimestamp = ago(0) },
			toReporting(installReady, "AllRequirementsMet", "all requirements found, attempting install", nil)},
		"a successor has begun to install": {unjudged, withSuccessor(installing), to(replacing, "BeingReplaced", "being replaced by csv: cool.v2")},
	})
}

// OLM's cases: Succeeded, its mode no longer supported: Failed; Succeeded, the group is deleted: Failed; Succeeded, a
// second group: Failed; Succeeded, other target namespaces: the annotations are written first, the phase stays.
func TestGatesInEachPhase(t *testing.T) {
	c := func(in *csv.Input) *v1alpha1.ClusterServiceVersion { return in.ClusterServiceVersion }
	metadata := func(why, message string, change func(*v1alpha1.ClusterServiceVersion)) func(csv.Input) olmcore.Result {
		return func(in csv.Input) olmcore.Result {
			next := in.ClusterServiceVersion.DeepCopy()
			change(next)
			return olmcore.Result{Actions: []olmcore.Action{olmcore.UpdateOf(in.ClusterServiceVersion, next, olmcore.Cause{Reason: why, Message: message})}}
		}
	}
	finalize := metadata(csv.ReasonFinalizerMissing, "cleanup must run before this ClusterServiceVersion is deleted",
		func(c *v1alpha1.ClusterServiceVersion) { c.Finalizers = []string{cleanup.Finalizer} })
	run(t, map[string]row{
		"the finalizer comes first": {brandNew, func(in *csv.Input) { c(in).Finalizers = nil }, finalize},
		"a copy is left alone":      {is(failed, "", ""), func(in *csv.Input) { c(in).Labels["olm.copiedFrom"] = "other"; c(in).Finalizers = nil }, nothing},
		"a copy loses the finalizer": {brandNew, func(in *csv.Input) { c(in).Labels["olm.copiedFrom"] = "other" }, metadata(cleanup.ReasonCopyReleased, "a copy has nothing to clean up",
			func(c *v1alpha1.ClusterServiceVersion) { c.Finalizers = []string{} })},
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
		"a selector does not match its template": {brandNew, func(in *csv.Input) {
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
		}, metadata(csv.ReasonFinalizerMissing, "cleanup must run before this ClusterServiceVersion is deleted",
			func(c *v1alpha1.ClusterServiceVersion) {
				c.Finalizers = []string{cleanup.Finalizer}
				c.Labels = map[string]string{"kept": "yes", "olm.api.c38844a2fa17abf0": "provided"}
			})},
		"API labels alone cause no write": {running, func(in *csv.Input) {
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
		}, metadata(csv.ReasonGroupChanged, "the annotations do not match OperatorGroup group",
			func(c *v1alpha1.ClusterServiceVersion) { c.Annotations["olm.targetNamespaces"] = "a,ns" })},
		"the annotation is removed if the group selects nothing": {is(succeeded, "", ""), func(in *csv.Input) { in.OperatorGroups.Items[0].Status.Namespaces = nil }, metadata(csv.ReasonGroupChanged, "the annotations do not match OperatorGroup group",
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
		"a CSV that is being replaced ignores the gates of the group": {is(replacing, "BeingReplaced", ""), func(in *csv.Input) { in.OperatorGroups.Items = nil; successorOf(in, succeeded) },
			to(deleting, "Replaced", "has been replaced by a newer ClusterServiceVersion that has successfully installed.")},
		"an unread list is not treated as empty": {is(succeeded, "", ""), func(in *csv.Input) { in.OperatorGroups = olmcore.Observed[*operatorsv1.OperatorGroup]{} }, func(in csv.Input) olmcore.Result {
			return notRead(in, "OperatorGroups")
		}},
	})
}

// OLM's cases: InstallReady with its Deployments: Installing; Installing, no template annotations: InstallReady; past
// its progress deadline: an error; Available: ready; a generation that was not observed: waiting; old replicas: waiting
// for them; no condition Available: waiting, with its name; the hash unchanged: installed.
func TestTransitionsFromInstallReadyAndInstalling(t *testing.T) {
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
			after(time.Minute, to(failed, "InstallComponentFailedNoRetry", "install strategy failed: no"))},
		"it was refused at an unknown time": {is(failed, "InstallComponentFailedNoRetry", ""), func(in *csv.Input) {
			in.ClusterServiceVersion.Status.LastTransitionTime = nil
		}, func(in csv.Input) olmcore.Result {
			out, err := csv.Reconcile(in)
			require.NoError(t, err)
			require.Equal(t, []string{"create Deployment cool"}, csvtest.Writes(out.Actions))
			return olmcore.Result{Actions: out.Actions}
		}},
		"the API server refuses a Deployment": {is(installReady, "AllRequirementsMet", ready), outcome(olmcore.Invalid, "bad"),
			to(failed, "InstallComponentFailed", "install strategy failed: bad")},
		"the Deployments are there": {is(installReady, "AllRequirementsMet", ready), deployed,
			to(installing, "InstallSucceeded", "waiting for install components to report healthy")},
		"the group's account is missing": {is(installReady, "AllRequirementsMet", ready), func(in *csv.Input) { in.OperatorGroups.Items[0].Spec.ServiceAccountName = "limited" },
			after(10*time.Second, to(installReady, "AllRequirementsMet", "waiting for OperatorGroup service account limited"))},
		"all Deployments are available": {is(installing, "InstallSucceeded", ""), deployed, to(succeeded, "InstallSucceeded", "install strategy completed with no errors")},
		"it took too long": {is(installing, "InstallWaiting", ""), ill(func(in *csv.Input) { in.Deployments.Items[0].Status.Conditions = nil }),
			to(failed, "InstallCheckFailed", "install timeout")},
		"a Deployment is not available yet": {is(installing, "InstallSucceeded", ""), ill(func(in *csv.Input) {
			in.Deployments.Items[0].Status.Conditions = nil
			in.ClusterServiceVersion.Status.LastTransitionTime = ago(time.Minute)
		}), after(4*time.Minute, to(installing, "InstallWaiting",
			`installing: waiting for deployment cool to become ready: deployment "cool" not available: missing condition "Available"`))},
		"the Deployment's new generation is not observed yet": {is(installing, "InstallSucceeded", ""), ill(func(in *csv.Input) {
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
		"an annotation has another value": {is(installing, "InstallWaiting", ""), ill(func(in *csv.Input) { in.Deployments.Items[0].Spec.Template.Annotations["olm.operatorGroup"] = "x" }),
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
// NoOperatorGroup, repaired: Pending; Succeeded, the CRD is deleted: Failed; a Succeeded, b is new and replaces it: a
// is Replacing, b is Pending; Failed because of a conflict that ended: Pending; Failed because of a static group that
// was corrected: Pending; fail-forward: Failed with a successor becomes Replacing; the successor is found, not found,
// or not read.
func TestTransitionsFromSucceededAndFailed(t *testing.T) {
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
	denied := is(failed, "InstallComponentFailed", "install strategy failed: denied")
	tried := func(class olmcore.ErrorClass, since time.Duration) func(in *csv.Input) {
		return func(in *csv.Input) {
			in.LastRun = olmcore.LastResults{{Group: "apps", Kind: "Deployment", Namespace: "ns", Name: "cool"}: {
				Class: class, Message: "denied", Count: 1, First: now.Add(-since), Last: now.Add(-since),
			}}
		}
	}
	installs := func(in csv.Input) olmcore.Result {
		in.ClusterServiceVersion = in.ClusterServiceVersion.DeepCopy()
		in.ClusterServiceVersion.Status.Phase, in.ClusterServiceVersion.Status.Reason = installReady, "AllRequirementsMet"
		in.LastRun = nil
		out, err := csv.Reconcile(in)
		require.NoError(t, err)
		require.Len(t, out.Actions, 1)
		return olmcore.Result{Actions: out.Actions}
	}
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
		"fail-forward lets a failed version be replaced": {is(failed, "InstallCheckFailed", ""), func(in *csv.Input) {
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
		"the operator is healthy again":                           {is(failed, "ComponentUnhealthy", ""), deployed, to(succeeded, "InstallSucceeded", well)},
		"a missing Deployment":                                    {is(failed, "ComponentUnhealthy", ""), nil, to(pending, "NeedsReinstall", "installing: missing deployment with name=cool")},
		"waiting needs no install":                                {is(failed, "ComponentUnhealthy", waiting), ill(func(in *csv.Input) { in.Deployments.Items[0].Status.Conditions = nil }), nothing},
		"the backoff before the next try":                         {denied, tried(olmcore.Webhook, 2*time.Second), after(3*time.Second, nothing)},
		"an invalid Deployment is not repeated":                   {denied, tried(olmcore.Invalid, time.Hour), nothing},
		"nothing is known of an earlier try":                      {denied, nil, installs},
		"the backoff is over":                                     {denied, tried(olmcore.Webhook, 5*time.Second), installs},
		"an attempt in the future waits no longer than a new one": {denied, tried(olmcore.Webhook, -time.Hour), after(5*time.Second, nothing)},
		"another failure is reported": {is(failed, "InstallComponentFailed", "install strategy failed: other"), tried(olmcore.Invalid, 0),
			to(failed, "InstallComponentFailed", "install strategy failed: denied")},
		"the account lost its permissions": {denied, tried(olmcore.Forbidden, 0), after(time.Minute, to(failed, "InstallComponentFailedNoRetry", "install strategy failed: denied"))},
		"everything is installed":          {denied, ill(func(in *csv.Input) { in.Deployments.Items[0].Status.Conditions = nil }), to(installing, "InstallSucceeded", "waiting for install components to report healthy")},
		"the operator became healthy":      {denied, deployed, to(succeeded, "InstallSucceeded", well)},
		"an old version is not revived":    {is(failed, "NoOperatorGroup", ""), withSuccessor(succeeded), to(replacing, "BeingReplaced", "being replaced by csv: cool.v2")},
	})
}

// OLM's cases: a Replacing, b Succeeded: a is Deleting; a Deleting: it is deleted; a and b Replacing, c Succeeded: OLM
// is stuck, this library deletes both; a CSV that replaces itself, with either upgrade strategy, is not affected; a CSV
// that replaces itself has no predecessor or successor; a linear chain contains all its versions; a successor that does
// not exist is ignored.
func TestTransitionsFromReplacingAndDeleting(t *testing.T) {
	const done = "has been replaced by a newer ClusterServiceVersion that has successfully installed."
	run(t, map[string]row{
		"the oldest version is deleted first": {is(replacing, "BeingReplaced", ""), func(in *csv.Input) { predecessorOf(in, replacing); successorOf(in, succeeded) }, nothing},
		"the successor is Succeeded":          {is(replacing, "BeingReplaced", ""), withSuccessor(succeeded), to(deleting, "Replaced", done)},
		"a later successor is Succeeded": {is(replacing, "BeingReplaced", ""), func(in *csv.Input) {
			successorOf(in, replacing)
			last := operator("cool.v3", 3)
			last.Spec.Replaces = "cool.v2"
			hold(last, succeeded, "InstallSucceeded", "", time.Minute)
			in.Neighbours.Items = append(in.Neighbours.Items, last)
		}, to(deleting, "Replaced", done)},
		"the successor is still installing": {is(replacing, "BeingReplaced", ""), withSuccessor(installing), after(hourOn, nothing)},
		"the successor is gone for a moment": {is(replacing, "BeingReplaced", ""), func(in *csv.Input) {
			in.ClusterServiceVersion.Status.LastTransitionTime = ago(10 * time.Second)
		}, after(20*time.Second, nothing)},
		"the successor does not appear again": {is(replacing, "BeingReplaced", ""), nil,
			to(pending, "NeedsReinstall", "replacement of cool.v1 disappeared; verifying installation again")},
		"a replaced version is deleted": {is(deleting, "Replaced", ""), nil, func(in csv.Input) olmcore.Result {
			return olmcore.Result{Actions: []olmcore.Action{olmcore.DeleteOf(in.ClusterServiceVersion, olmcore.Cause{
				Reason: csv.ReasonReplaced, Message: "a newer version has been installed",
			})}}
		}},
		"a version that replaces itself replaces nothing": {is(replacing, "BeingReplaced", ""), func(in *csv.Input) { in.ClusterServiceVersion.Spec.Replaces = "cool.v1" },
			to(pending, "NeedsReinstall", "replacement of cool.v1 disappeared; verifying installation again")},
		"the older version of a cycle is replaced": {is(replacing, "BeingReplaced", ""), func(in *csv.Input) {
			in.ClusterServiceVersion.Spec.Replaces = "cool.v2"
			successorOf(in, succeeded)
		}, func(in csv.Input) olmcore.Result {
			res := moves(in, deleting, "Replaced", done)
			res.Diagnostics = []olmcore.Diagnostic{{
				Severity: olmcore.Warning, Reason: csv.ReasonReplacesCycle, Target: olmcore.RefOf(in.ClusterServiceVersion).Unversioned(), Path: "spec.replaces",
				Message: "spec.replaces leads from cool.v1 back to itself, so the newest version of the cycle counts as the latest; " +
					"correct spec.replaces",
			}}
			return res
		}},
	})
}

// withAPIService makes the CSV of input require or own an APIService. status is the status of its Available condition.
// If it is empty, the APIService does not exist.
func withAPIService(t *testing.T, in *csv.Input, owned bool, status apiregistrationv1.ConditionStatus) {
	t.Helper()
	d := v1alpha1.APIServiceDescription{Name: "things", Group: "api.example.com", Version: "v1", Kind: "Thing", DeploymentName: "cool"}
	definitions := &in.ClusterServiceVersion.Spec.APIServiceDefinitions
	if owned {
		definitions.Owned = []v1alpha1.APIServiceDescription{d}
	} else {
		definitions.Required = []v1alpha1.APIServiceDescription{d}
	}
	in.APIServices = olmcore.Found[*apiregistrationv1.APIService]()
	if status != "" {
		in.APIServices.Items = []*apiregistrationv1.APIService{{
			ObjectMeta: metav1.ObjectMeta{Name: "v1.api.example.com", UID: "api"},
			Status:     apiregistrationv1.APIServiceStatus{Conditions: []apiregistrationv1.APIServiceCondition{{Type: apiregistrationv1.Available, Status: status}}},
		}}
	}
	phase := in.ClusterServiceVersion.Status
	in.ClusterServiceVersion.Status = v1alpha1.ClusterServiceVersionStatus{}
	*in = labelled(t, *in)
	in.ClusterServiceVersion.Status = phase
}

func apiServiceReport(status, message, uid string) []v1alpha1.RequirementStatus {
	met := metReport()
	return []v1alpha1.RequirementStatus{met[0], {
		Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService", Name: "v1.api.example.com",
		Status: v1alpha1.StatusReason(status), Message: message, UUID: uid,
	}, met[1]}
}

// OLM's cases: None with a required APIService becomes Pending; a cluster rule that mixes resources and URLs fails;
// Pending without its required APIService stays Pending; Pending with a required APIService that is not available stays
// Pending; Pending with a required APIService that is unknown stays Pending; an owned APIService without Deployment:
// Pending; another version owns the CRD: OwnerConflict; the other version stays Succeeded; Pending with its required
// APIService: InstallReady; the same with an owned APIService; UnsupportedOperatorGroup, repaired: Pending;
// TooManyOperatorGroups, repaired: Pending; Installing beside an unmanaged Deployment: Succeeded, that Deployment
// stays; Succeeded beside an unmanaged Deployment: the same; Installing, a wrong hash label: InstallReady; Succeeded, a
// new annotation of the CSV: installed again; a Deleting, b Replacing, c Succeeded: a is deleted, then b; fail-forward
// in a chain: the middle version becomes Replacing; without fail-forward: Failed becomes Pending; a CSV that replaces
// itself, with either upgrade strategy, is not affected; Available is False or Unknown: waiting, with its message; two
// replicas with one unavailable stay Succeeded.
func TestTransitionsInTestsOfOLM(t *testing.T) {
	const notFound = "one or more requirements couldn't be found"
	apiService := func(owned bool, status apiregistrationv1.ConditionStatus) func(in *csv.Input) {
		return func(in *csv.Input) { withAPIService(t, in, owned, status) }
	}
	waitsForAPI := func(message string) func(csv.Input) olmcore.Result {
		return after(hourOn, func(in csv.Input) olmcore.Result {
			return reporting(moves(in, pending, "RequirementsNotMet", notFound), apiServiceReport("NotPresent", message, "")...)
		})
	}
	deployed := func(change func(in *csv.Input)) func(in *csv.Input) {
		return func(in *csv.Input) { deploy(t, in); change(in) }
	}
	extra := func(in *csv.Input) {
		in.Deployments.Items = append(in.Deployments.Items, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "extra", UID: "extra"}})
	}
	forward := func(in *csv.Input) {
		in.OperatorGroups.Items[0].Spec.UpgradeStrategy = operatorsv1.UpgradeStrategyUnsafeFailForward
	}
	itself := func(in *csv.Input) { in.ClusterServiceVersion.Spec.Replaces = "cool.v1" }
	available := func(status corev1.ConditionStatus) func(in *csv.Input) {
		return deployed(func(in *csv.Input) {
			in.ClusterServiceVersion.Status.LastTransitionTime = ago(0)
			in.Deployments.Items[0].Status.Conditions[0].Status, in.Deployments.Items[0].Status.Conditions[0].Message = status, "too few"
		})
	}
	unavailable := after(5*time.Minute, to(installing, "InstallWaiting", `installing: waiting for deployment cool to become ready: deployment "cool" not available: too few`))
	run(t, map[string]row{
		"a new version that requires an APIService": {brandNew, apiService(false, ""), to(pending, "RequirementsUnknown", unchecked)},
		"a cluster rule mixes resources and URLs": {is(pending, "RequirementsUnknown", ""), onSpec(func(s *v1alpha1.ClusterServiceVersionSpec) {
			s.InstallStrategy.StrategySpec.ClusterPermissions = []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: "cool", Rules: []rbacv1.PolicyRule{
				{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}, NonResourceURLs: []string{"/x"}},
			}}}
		}), to(failed, "InvalidInstallStrategy", "install strategy invalid: rule invalid: rule cannot apply to both regular resources and non-resource URLs")},
		"the required APIService is absent": {is(pending, "RequirementsUnknown", ""), apiService(false, ""), waitsForAPI("APIService v1.api.example.com not found")},
		"the required APIService is unavailable": {is(pending, "RequirementsUnknown", ""), apiService(false, "False"),
			waitsForAPI("APIService v1.api.example.com is not available")},
		"the required APIService is unknown": {is(pending, "RequirementsUnknown", ""), apiService(false, "Unknown"),
			waitsForAPI("APIService v1.api.example.com is not available")},
		"the required APIService is available": {is(pending, "RequirementsUnknown", ""), apiService(false, "True"), func(in csv.Input) olmcore.Result {
			return reporting(moves(in, installReady, "AllRequirementsMet", allMet), apiServiceReport("Present", "", "api")...)
		}},
		"the owned APIService has no Deployment": {is(pending, "RequirementsUnknown", ""), func(in *csv.Input) {
			withAPIService(t, in, true, "")
			in.ClusterServiceVersion.Spec.APIServiceDefinitions.Owned[0].DeploymentName = "nowhere"
		}, after(hourOn, func(in csv.Input) olmcore.Result {
			return reporting(moves(in, pending, "RequirementsNotMet", notFound), apiServiceReport("DeploymentNotFound", "", "")...)
		})},
		"the present owner of the CRD stays Succeeded": {running, deployed(func(in *csv.Input) { in.Neighbours.Items = append(in.Neighbours.Items, operator("rival.v1", 1)) }),
			nothing},
		"UnsupportedOperatorGroup is repaired": {is(failed, "UnsupportedOperatorGroup", ""), nil, to(pending, "RequirementsUnknown", "InstallModes now support target namespaces")},
		"TooManyOperatorGroups is repaired":    {is(failed, "TooManyOperatorGroups", ""), nil, to(pending, "RequirementsUnknown", "InstallModes now support target namespaces")},
		"NoTargetNamespaces is repaired":       {is(failed, "NoTargetNamespaces", ""), nil, to(pending, "RequirementsUnknown", "InstallModes now support target namespaces")},

		"Installing beside a Deployment without an owner": {is(installing, "InstallSucceeded", ""), deployed(extra), to(succeeded, "InstallSucceeded", wellDone)},
		"Succeeded beside a Deployment without an owner":  {running, deployed(extra), nothing},
		"Installing, another hash label": {is(installing, "InstallSucceeded", ""), deployed(func(in *csv.Input) {
			in.Deployments.Items[0].Labels["olm.deployment-spec-hash"] = "old"
		}), to(installReady, "InstallWaiting", "installing: deployment changed old hash=old, new hash="+goldenHash)},
		"Succeeded, the CSV has a new annotation": {running, deployed(func(in *csv.Input) { in.ClusterServiceVersion.Annotations["new"] = "x" }),
			to(installReady, "ComponentUnhealthy", "installing: annotations on deployment does not contain expected key: new")},
		"two of two replicas wanted, one available": {running, deployed(func(in *csv.Input) {
			s := &in.Deployments.Items[0].Status
			s.Replicas, s.UpdatedReplicas, s.AvailableReplicas, s.UnavailableReplicas = 2, 2, 1, 1
		}), nothing},
		"scaled to nothing is ready": {running, deployed(func(in *csv.Input) {
			s := &in.Deployments.Items[0].Status
			s.Replicas, s.UpdatedReplicas = 0, 0
		}), nothing},
		"Available is False with a message":   {is(installing, "InstallSucceeded", ""), available("False"), unavailable},
		"Available is Unknown with a message": {is(installing, "InstallSucceeded", ""), available("Unknown"), unavailable},

		"fail-forward in the middle of a chain": {is(failed, "InstallCheckFailed", ""), func(in *csv.Input) { forward(in); predecessorOf(in, replacing); successorOf(in, pending) },
			to(replacing, "BeingReplaced", "Fail Forward is enabled, allowing Failed csv to be replaced by csv: cool.v2")},
		"without fail-forward a failed version tries again": {is(failed, "InstallCheckFailed", ""), func(in *csv.Input) { successorOf(in, pending) },
			to(pending, "NeedsReinstall", "installing: missing deployment with name=cool")},
		"fail-forward with itself alone": {is(replacing, "BeingReplaced", ""), func(in *csv.Input) { forward(in); itself(in) },
			to(pending, "NeedsReinstall", "replacement of cool.v1 disappeared; verifying installation again")},
		"fail-forward, Failed, with itself alone": {is(failed, "InstallCheckFailed", ""), func(in *csv.Input) { forward(in); itself(in) },
			to(pending, "NeedsReinstall", "installing: missing deployment with name=cool")},
		"the predecessor is about to be deleted": {is(replacing, "BeingReplaced", ""), func(in *csv.Input) {
			predecessorOf(in, deleting).DeletionTimestamp = ago(0)
			successorOf(in, succeeded)
		}, nothing},
	})
}

// OLM's case: Upgradeable False blocks; an override unblocks; an old generation blocks.
func TestUpgradeWaitsForUpgradeableCondition(t *testing.T) {
	const outdated, refused = `operator is not upgradeable: the operatorcondition status "Upgradeable"="True" is outdated`, "operator is not upgradeable: the operator is not upgradeable: "
	condition := func(status metav1.ConditionStatus, observed int64, message string) metav1.Condition {
		return metav1.Condition{Type: "Upgradeable", Status: status, ObservedGeneration: observed, Message: message}
	}
	for name, c := range map[string]struct {
		overrides, conditions []metav1.Condition
		elsewhere             bool
		says                  string
	}{
		"no condition":           {nil, nil, false, ""},
		"True":                   {nil, []metav1.Condition{condition("True", 3, "")}, false, ""},
		"Unknown":                {nil, []metav1.Condition{condition("Unknown", 3, "")}, false, ""},
		"False":                  {nil, []metav1.Condition{condition("False", 3, "busy")}, false, refused + "busy"},
		"of an older generation": {nil, []metav1.Condition{condition("True", 2, "")}, false, outdated},
		"an override allows it": {
			[]metav1.Condition{condition("True", 0, "")}, []metav1.Condition{condition("False", 3, "busy")}, false, ""},
		"an override forbids it": {[]metav1.Condition{condition("False", 0, "mine")}, []metav1.Condition{condition("True", 3, "")}, false, refused + "mine"},
		"an override is Unknown": {[]metav1.Condition{condition("Unknown", 0, "well")}, nil, false, refused + "well"},
		"of another operator":    {nil, []metav1.Condition{condition("False", 3, "busy")}, true, ""},
		"an override of another condition": {
			[]metav1.Condition{{Type: "Odd", Status: "False"}}, []metav1.Condition{condition("True", 3, "")}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(pending, "RequirementsUnknown", unchecked)
			predecessorOf(&in, replacing)
			said := &operatorsv2.OperatorCondition{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cool.v0", Generation: 3}}
			if c.elsewhere {
				said.Name = "other.v0"
			}
			said.Spec.Overrides, said.Status.Conditions = c.overrides, c.conditions
			in.OperatorConditions = olmcore.Found(said)
			if c.says == "" {
				check(t, in, reporting(moves(in, installReady, "AllRequirementsMet", allMet), metReport()...))
				return
			}
			check(t, in, requeue(moves(in, pending, "OperatorConditionNotUpgradeable", c.says), 30*time.Second))
		})
	}
}

// TestInstallModesAllowTargetNamespaces checks which target namespaces each set of install modes allows.
// OLM's cases: an unsupported mode: Failed; the table of install modes; aggregation, install modes, intersection and
// static groups.
func TestInstallModesAllowTargetNamespaces(t *testing.T) {
	const own, single, multi, all = "OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"
	lacks := func(mode, what string) string {
		return mode + " InstallModeType not supported, cannot configure to watch " + what
	}
	for name, c := range map[string]struct {
		supported []v1alpha1.InstallModeType
		targets   []string
		says      string
	}{
		"its own":                    {[]v1alpha1.InstallModeType{own}, []string{"ns"}, ""},
		"its own, not supported":     {[]v1alpha1.InstallModeType{single, multi, all}, []string{"ns"}, lacks(own, "own namespace")},
		"all":                        {[]v1alpha1.InstallModeType{all}, []string{""}, ""},
		"all, not supported":         {[]v1alpha1.InstallModeType{own, single, multi}, []string{""}, lacks(all, "all namespaces")},
		"another":                    {[]v1alpha1.InstallModeType{single}, []string{"a"}, ""},
		"another, not supported":     {[]v1alpha1.InstallModeType{own, multi, all}, []string{"a"}, lacks(single, "one namespace")},
		"two others":                 {[]v1alpha1.InstallModeType{multi}, []string{"a", "b"}, ""},
		"two others, not supported":  {[]v1alpha1.InstallModeType{own, single, all}, []string{"a", "b"}, lacks(multi, "2 namespaces")},
		"its own and others":         {[]v1alpha1.InstallModeType{own, multi}, []string{"a", "b", "ns"}, ""},
		"its own and others, no own": {[]v1alpha1.InstallModeType{single, multi, all}, []string{"a", "ns"}, lacks(own, "own namespace")},
		"three, not supported":       {[]v1alpha1.InstallModeType{own, single, all}, []string{"a", "b", "ns"}, lacks(multi, "3 namespaces")},
		"all and another":            {[]v1alpha1.InstallModeType{own, single, multi, all}, []string{"", "a"}, "operatorgroup has invalid selected namespaces, NamespaceAll found when |selected namespaces| > 1"},
		"none is supported":          {nil, []string{"ns"}, lacks(own, "own namespace")},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(none, "", "")
			in.OperatorGroups.Items[0].Status.Namespaces = c.targets
			in.ClusterServiceVersion.Spec.InstallModes = nil
			for _, mode := range []v1alpha1.InstallModeType{own, single, multi, all} {
				is := false
				for _, s := range c.supported {
					is = is || s == mode
				}
				in.ClusterServiceVersion.Spec.InstallModes = append(in.ClusterServiceVersion.Spec.InstallModes, v1alpha1.InstallMode{Type: mode, Supported: is})
			}
			in = labelled(t, in)
			hold(in.ClusterServiceVersion, none, "", "", 0)
			if c.says == "" {
				check(t, in, moves(in, pending, "RequirementsUnknown", unchecked))
				return
			}
			check(t, in, moves(in, failed, "UnsupportedOperatorGroup", c.says))
		})
	}
}

// TestRejectedDeletionOfDeploymentIsRetried checks that the deletion of a Deployment is repeated while it exists.
// OLM's case: a failed read decides nothing, a failed deletion is repeated.
func TestRejectedDeletionOfDeploymentIsRetried(t *testing.T) {
	in := healthy(t)
	old := in.Deployments.Items[0].DeepCopy()
	old.Name, old.UID = "old", "old"
	in.Deployments.Items = append(in.Deployments.Items, old)
	first := reconciled(t, in)
	require.Equal(t, []string{"Deployment ns/old"}, deletions(first.Actions))
	in.LastRun = olmcore.LastResults{olmcore.KeyOf(old): {Class: olmcore.Forbidden, Message: "no", Count: 1, First: now, Last: now}}
	again := reconciled(t, in)
	require.Equal(t, first, again)
}
