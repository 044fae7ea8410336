// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/olmcore"
)

const (
	unchecked = "requirements not yet checked"
	allMet    = "all requirements found, attempting install"
	wellDone  = "install strategy completed with no errors"
)

func onSpec(change func(s *v1alpha1.ClusterServiceVersionSpec)) func(in *csv.Input) {
	return func(in *csv.Input) { change(&in.ClusterServiceVersion.Spec) }
}

func webhook(change func(w *v1alpha1.WebhookDescription)) func(in *csv.Input) {
	return onSpec(func(s *v1alpha1.ClusterServiceVersionSpec) {
		w := v1alpha1.WebhookDescription{GenerateName: "w", DeploymentName: "cool", Type: v1alpha1.ValidatingAdmissionWebhook}
		change(&w)
		s.WebhookDefinitions = []v1alpha1.WebhookDescription{w}
	})
}

func webhookRow(change func(w *v1alpha1.WebhookDescription), message string) row {
	return row{unjudged, webhook(change), toReporting(failed, "InvalidWebhookDescription", message, nil)}
}

func invalid(message string, change func(s *v1alpha1.ClusterServiceVersionSpec)) row {
	return row{unjudged, onSpec(change), to(failed, "InvalidInstallStrategy", message)}
}

// OLM's case: another strategy: an error in each phase.
func TestBadInput(t *testing.T) {
	const unrecognized = "install strategy invalid: unrecognized install strategy"
	noStrategy := onSpec(func(s *v1alpha1.ClusterServiceVersionSpec) { s.InstallStrategy.StrategyName = "" })
	deployed := func(change func(in *csv.Input)) func(in *csv.Input) {
		return func(in *csv.Input) { deploy(t, in); change(in) }
	}
	run(t, map[string]row{
		"a name that no label can hold": {is(pending, "", ""), func(in *csv.Input) { in.ClusterServiceVersion.Name = "cool.v1." },
			to(failed, "InvalidInstallStrategy", `name "cool.v1." cannot be used as a label value`)},
		"a name of 63 characters is fine": {brandNew, func(in *csv.Input) {
			in.ClusterServiceVersion.Name = "a23456789012345678901234567890123456789012345678901234567890123"
		}, to(pending, "RequirementsUnknown", unchecked)},
		"a CRD without name": invalid(`invalid CRD name "": want <plural>.<group>`, func(s *v1alpha1.ClusterServiceVersionSpec) { s.CustomResourceDefinitions.Owned[0].Name = "" }),
		"a CRD without plural": invalid(`invalid CRD name ".example.com": want <plural>.<group>`, func(s *v1alpha1.ClusterServiceVersionSpec) {
			s.CustomResourceDefinitions.Owned[0].Name = ".example.com"
		}),
		"a CRD without version": invalid("CRD cools.example.com is described without a version", func(s *v1alpha1.ClusterServiceVersionSpec) { s.CustomResourceDefinitions.Owned[0].Version = "" }),
		"a required CRD, bad": invalid(`invalid CRD name "hots": want <plural>.<group>`, func(s *v1alpha1.ClusterServiceVersionSpec) {
			s.CustomResourceDefinitions.Required = []v1alpha1.CRDDescription{{Name: "hots"}}
		}),
		"a Deployment, no name": invalid("deployments[0]: name is empty", func(s *v1alpha1.ClusterServiceVersionSpec) {
			s.InstallStrategy.StrategySpec.DeploymentSpecs[0].Name = ""
		}),
		"an empty selector": invalid(`deployment "cool" has no selector`, func(s *v1alpha1.ClusterServiceVersionSpec) {
			s.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Selector = &metav1.LabelSelector{}
		}),
		"cluster-wide, nobody's": invalid("clusterPermissions[0]: serviceAccountName is empty", func(s *v1alpha1.ClusterServiceVersionSpec) {
			s.InstallStrategy.StrategySpec.ClusterPermissions = []v1alpha1.StrategyDeploymentPermissions{{}}
		}),

		"no strategy name, Pending":      {is(pending, "RequirementsUnknown", ""), noStrategy, to(failed, "InvalidInstallStrategy", unrecognized)},
		"no strategy name, said already": {is(failed, "InvalidInstallStrategy", unrecognized), noStrategy, nothing},

		"no Deployments: nothing to install": {is(installReady, "AllRequirementsMet", ""), onSpec(func(s *v1alpha1.ClusterServiceVersionSpec) { s.InstallStrategy.StrategySpec.DeploymentSpecs = nil }),
			to(installing, "InstallSucceeded", "waiting for install components to report healthy")},
		"no Deployments: nothing that could be ill": {is(installing, "InstallSucceeded", ""), onSpec(func(s *v1alpha1.ClusterServiceVersionSpec) { s.InstallStrategy.StrategySpec.DeploymentSpecs = nil }),
			to(succeeded, "InstallSucceeded", wellDone)},

		"a webhook without generateName":   webhookRow(func(w *v1alpha1.WebhookDescription) { w.GenerateName = "" }, "webhook description without generateName"),
		"a webhook without deploymentName": webhookRow(func(w *v1alpha1.WebhookDescription) { w.DeploymentName = "" }, `webhook description "w" without deploymentName`),
		"a webhook of an unknown one":      webhookRow(func(w *v1alpha1.WebhookDescription) { w.DeploymentName = "hot" }, `webhook description "w" names the unknown deployment "hot"`),
		"a webhook of an unknown type":     webhookRow(func(w *v1alpha1.WebhookDescription) { w.Type = "Odd" }, `webhook description "w" has the unknown type "Odd"`),
		"a webhook's port is too high":     webhookRow(func(w *v1alpha1.WebhookDescription) { w.ContainerPort = 65536 }, `webhook description "w": containerPort 65536 is outside 1-65535`),
		"a webhook's port is negative":     webhookRow(func(w *v1alpha1.WebhookDescription) { w.ContainerPort = -1 }, `webhook description "w": containerPort -1 is outside 1-65535`),
		"a webhook that is bad stays Failed, without another write": {is(failed, "InvalidWebhookDescription", "webhook description without generateName"), deployed(webhook(func(w *v1alpha1.WebhookDescription) { w.GenerateName = "" })),
			after(hourOn, nothing)},
		"a sound webhook": {unjudged, webhook(func(*v1alpha1.WebhookDescription) {}), toReporting(installReady, "AllRequirementsMet", allMet, nil)},

		"a reason that nobody knows, Pending":    {is(pending, "Odd", ""), nil, toReporting(installReady, "AllRequirementsMet", allMet, nil)},
		"a reason that nobody knows, Failed":     {is(failed, "Odd", ""), deployed(func(*csv.Input) {}), to(succeeded, "InstallSucceeded", wellDone)},
		"a reason that nobody knows, Installing": {is(installing, "Odd", ""), deployed(func(*csv.Input) {}), to(succeeded, "InstallSucceeded", wellDone)},

		"a group of that name elsewhere is not ours": {unjudged, func(in *csv.Input) {
			elsewhere := group()
			elsewhere.Namespace, elsewhere.UID = "other", "elsewhere"
			in.OperatorGroups.Items = append(in.OperatorGroups.Items, elsewhere)
		}, toReporting(installReady, "AllRequirementsMet", allMet, nil)},
		"a failed try that lies in the future waits no longer than a fresh one": {is(failed, "InstallComponentFailed", ""), func(in *csv.Input) {
			in.ClusterServiceVersion.Status.LastTransitionTime = ago(-time.Hour)
		}, after(5*time.Second, nothing)},
		"a wait that began in the future begins now": {is(pending, "RequirementsNotMet", "one or more requirements couldn't be found"), func(in *csv.Input) {
			in.CustomResourceDefinitions.Items = nil
			in.ClusterServiceVersion.Status.LastTransitionTime = ago(-time.Hour)
			in.ClusterServiceVersion.Status.RequirementStatus = metReport()
			r := &in.ClusterServiceVersion.Status.RequirementStatus[0]
			r.Status, r.Message, r.UUID = "NotPresent", "CRD is not present", ""
		}, after(5*time.Second, nothing)},
		"an unknown install mode is ignored, and named once": {brandNew, onSpec(func(s *v1alpha1.ClusterServiceVersionSpec) {
			s.InstallModes = append(s.InstallModes, v1alpha1.InstallMode{Type: "SomeNamespaces", Supported: true})
		}), func(in csv.Input) olmcore.Result {
			res := moves(in, pending, "RequirementsUnknown", unchecked)
			res.Diagnostics = []olmcore.Diagnostic{{
				Severity: olmcore.Warning, Reason: csv.ReasonUnknownInstallMode, Target: olmcore.RefOf(in.ClusterServiceVersion).Unversioned(), Path: "spec.installModes[2].type",
				Message: `install mode "SomeNamespaces" is unknown and counts for nothing`,
			}}
			return res
		}},
		"an unknown install mode supports nothing": {is(pending, "RequirementsUnknown", ""), onSpec(func(s *v1alpha1.ClusterServiceVersionSpec) {
			s.InstallModes = []v1alpha1.InstallMode{{Type: "SomeNamespaces", Supported: true}}
		}), to(failed, "UnsupportedOperatorGroup", "OwnNamespace InstallModeType not supported, cannot configure to watch own namespace")},
	})
}

// TestPartsThatAreMissingAreNotLookedInto: whatever an API server can leave out of an object is taken for missing.
func TestPartsThatAreMissingAreNotLookedInto(t *testing.T) {
	in := input(pending, "RequirementsUnknown", unchecked)
	in.ClusterServiceVersion.Spec.APIServiceDefinitions.Required = []v1alpha1.APIServiceDescription{{Group: "g", Version: "v1", Kind: "K"}}
	in.APIServices = olmcore.Found(&apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: "v1.g"}})
	in.Subscriptions = olmcore.Found(&v1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}, Status: v1alpha1.SubscriptionStatus{InstalledCSV: "cool.v1"}})
	in.Deployments = olmcore.Found(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cool"}})
	in = labelled(t, in)
	a := assess(t, in)
	require.Equal(t, "RequirementsNotMet", a.Rule)
	require.Equal(t, "APIService v1.g is not available", a.Requirements[1].Message)
	in.OperatorGroups = olmcore.Found(&operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "group"}})
	require.Equal(t, "OperatorGroupNotReady", assess(t, in).Rule)
}
