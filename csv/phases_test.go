// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/olmcore"
)

// withAPIService makes input's CSV require or own an APIService; status is that of its Available condition, "" for none
// that is there.
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
// Pending without its required APIService stays Pending; so it does when that is not available; or when no one knows;
// an owned APIService without Deployment: Pending; another version owns the CRD: OwnerConflict; that one stays
// Succeeded; Pending with its required APIService: InstallReady; the same with an owned APIService;
// UnsupportedOperatorGroup, cured: Pending; TooManyOperatorGroups, cured: Pending; Installing beside a foreign
// Deployment: Succeeded, that one untouched; the same when Succeeded; Installing, a wrong hash label: InstallReady;
// Succeeded, a new annotation of the CSV: installed again; a Deleting, b Replacing, c Succeeded: a goes, then b;
// fail-forward in a chain: the middle one becomes Replacing; without it Failed goes to Pending; Replacing by itself,
// with either strategy, harms nothing; Available False or Unknown: waiting, with its message; two replicas with one
// unavailable stay Succeeded.
func TestOLMsTransitions(t *testing.T) {
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
		"installed, the owned APIService is left to the user": {is(installReady, "AllRequirementsMet", ""), func(in *csv.Input) { withAPIService(t, in, true, ""); deploy(t, in) }, func(in csv.Input) olmcore.Result {
			res := moves(in, installing, "InstallSucceeded", "waiting for install components to report healthy")
			res.Diagnostics = []olmcore.Diagnostic{{
				Severity: olmcore.Warning, Reason: csv.ReasonAPIServicesNotInstalled, Target: olmcore.RefOf(in.ClusterServiceVersion).Unversioned(), Path: "spec.apiservicedefinitions.owned",
				Message: "owned APIServices and their serving certificates are not installed by this version of the library",
			}}
			return res
		}},
		"who owns the CRD already stays Succeeded": {running, deployed(func(in *csv.Input) { in.Neighbours.Items = append(in.Neighbours.Items, operator("rival.v1", 1)) }),
			nothing},
		"Unsupported, cured":        {is(failed, "UnsupportedOperatorGroup", ""), nil, to(pending, "RequirementsUnknown", "InstallModes now support target namespaces")},
		"TooMany, cured":            {is(failed, "TooManyOperatorGroups", ""), nil, to(pending, "RequirementsUnknown", "InstallModes now support target namespaces")},
		"NoTargetNamespaces, cured": {is(failed, "NoTargetNamespaces", ""), nil, to(pending, "RequirementsUnknown", "InstallModes now support target namespaces")},

		"Installing beside a Deployment of nobody's": {is(installing, "InstallSucceeded", ""), deployed(extra), to(succeeded, "InstallSucceeded", wellDone)},
		"Succeeded beside a Deployment of nobody's":  {running, deployed(extra), nothing},
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
		"a Deployment says False why":   {is(installing, "InstallSucceeded", ""), available("False"), unavailable},
		"a Deployment says Unknown why": {is(installing, "InstallSucceeded", ""), available("Unknown"), unavailable},

		"fail-forward in the middle of a chain": {is(failed, "InstallCheckFailed", ""), func(in *csv.Input) { forward(in); predecessorOf(in, replacing); successorOf(in, pending) },
			to(replacing, "BeingReplaced", "Fail Forward is enabled, allowing Failed csv to be replaced by csv: cool.v2")},
		"without fail-forward a failed version tries again": {is(failed, "InstallCheckFailed", ""), func(in *csv.Input) { successorOf(in, pending) },
			to(pending, "NeedsReinstall", "installing: missing deployment with name=cool")},
		"fail-forward with itself alone": {is(replacing, "BeingReplaced", ""), func(in *csv.Input) { forward(in); itself(in) },
			to(pending, "NeedsReinstall", "replacement of cool.v1 disappeared; verifying installation again")},
		"fail-forward, Failed, with itself alone": {is(failed, "InstallCheckFailed", ""), func(in *csv.Input) { forward(in); itself(in) },
			to(pending, "NeedsReinstall", "installing: missing deployment with name=cool")},
		"the predecessor is about to go": {is(replacing, "BeingReplaced", ""), func(in *csv.Input) {
			predecessorOf(in, deleting).DeletionTimestamp = ago(0)
			successorOf(in, succeeded)
		}, nothing},
	})
}

// OLM's case: Upgradeable False blocks; an override unblocks; an old generation blocks.
func TestUpgradeableCondition(t *testing.T) {
	const outdated, refused = `operator is not upgradeable: the operatorcondition status "Upgradeable"="True" is outdated`, "operator is not upgradeable: the operator is not upgradeable: "
	condition := func(status metav1.ConditionStatus, observed int64, message string) metav1.Condition {
		return metav1.Condition{Type: "Upgradeable", Status: status, ObservedGeneration: observed, Message: message}
	}
	for name, c := range map[string]struct {
		overrides, conditions []metav1.Condition
		elsewhere             bool
		says                  string
	}{
		"no condition":             {nil, nil, false, ""},
		"True":                     {nil, []metav1.Condition{condition("True", 3, "")}, false, ""},
		"Unknown":                  {nil, []metav1.Condition{condition("Unknown", 3, "")}, false, ""},
		"False":                    {nil, []metav1.Condition{condition("False", 3, "busy")}, false, refused + "busy"},
		"of an older generation":   {nil, []metav1.Condition{condition("True", 2, "")}, false, outdated},
		"an override allows it":    {[]metav1.Condition{condition("True", 0, "")}, []metav1.Condition{condition("False", 3, "busy")}, false, ""},
		"an override forbids it":   {[]metav1.Condition{condition("False", 0, "mine")}, []metav1.Condition{condition("True", 3, "")}, false, refused + "mine"},
		"an override is not sure":  {[]metav1.Condition{condition("Unknown", 0, "well")}, nil, false, refused + "well"},
		"of another operator":      {nil, []metav1.Condition{condition("False", 3, "busy")}, true, ""},
		"another sort of override": {[]metav1.Condition{{Type: "Odd", Status: "False"}}, []metav1.Condition{condition("True", 3, "")}, false, ""},
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

// TestInstallModes is the table of what may be watched from where.
// OLM's cases: an unsupported mode: Failed; the table of install modes; aggregation, install modes, intersection and
// static groups.
func TestInstallModes(t *testing.T) {
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

// TestADeploymentThatCannotBeDeletedIsAskedForAgain, as long as it is there.
// OLM's case: a failed look-up decides nothing, a failed deletion is repeated.
func TestADeploymentThatCannotBeDeletedIsAskedForAgain(t *testing.T) {
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
