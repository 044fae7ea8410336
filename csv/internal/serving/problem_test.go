// SPDX-License-Identifier: Apache-2.0

package serving_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	internalserving "github.com/olmcore/olm/csv/internal/serving"
	"github.com/olmcore/olm/internal/csvtest"
	"github.com/olmcore/olm/internal/realdata"
)

const (
	allGroups      = "webhook rules cannot include all groups"
	olmGroup       = "webhook rules cannot include the OLM group"
	configurations = "webhook rules cannot include MutatingWebhookConfiguration or ValidatingWebhookConfiguration resources"
)

func TestForbiddenRules(t *testing.T) {
	const group = "admissionregistration.k8s.io"
	for name, c := range map[string]struct {
		groups, resources []string
		want              string
	}{
		"one of the operator's":         {[]string{"example.com"}, []string{"cools"}, ""},
		"all of the operator's":         {[]string{"example.com"}, []string{"*/*"}, ""},
		"the core group":                {[]string{""}, []string{"pods"}, ""},
		"all groups":                    {[]string{"*"}, []string{"cools"}, allGroups},
		"all groups, among others":      {[]string{"example.com", "*"}, []string{"cools"}, allGroups},
		"OLM's":                         {[]string{"operators.coreos.com"}, []string{"subscriptions"}, olmGroup},
		"OLM's, among others":           {[]string{"", "operators.coreos.com"}, []string{"pods"}, olmGroup},
		"OLM's, in capitals":            {[]string{"Operators.CoreOS.com"}, []string{"subscriptions"}, olmGroup},
		"OLM's status":                  {[]string{"operators.coreos.com"}, []string{"subscriptions/status"}, olmGroup},
		"a name that ends like OLM's":   {[]string{"x.operators.coreos.com"}, []string{"subscriptions"}, ""},
		"configurations by kind":        {[]string{group}, []string{"ValidatingWebhookConfiguration"}, configurations},
		"mutating ones by kind":         {[]string{group}, []string{"MutatingWebhookConfiguration"}, configurations},
		"by resource":                   {[]string{group}, []string{"validatingwebhookconfigurations"}, configurations},
		"mutating ones by resource":     {[]string{group}, []string{"mutatingwebhookconfigurations"}, configurations},
		"by singular":                   {[]string{group}, []string{"mutatingwebhookconfiguration"}, configurations},
		"in capitals":                   {[]string{"AdmissionRegistration.K8s.io"}, []string{"VALIDATINGWEBHOOKCONFIGURATIONS"}, configurations},
		"all resources":                 {[]string{group}, []string{"*"}, configurations},
		"all resources and parts":       {[]string{group}, []string{"*/*"}, configurations},
		"a part of all resources":       {[]string{group}, []string{"*/status"}, configurations},
		"a part":                        {[]string{group}, []string{"validatingwebhookconfigurations/status"}, configurations},
		"all parts":                     {[]string{group}, []string{"mutatingwebhookconfigurations/*"}, configurations},
		"among other groups":            {[]string{"apps", group}, []string{"deployments", "mutatingwebhookconfigurations"}, configurations},
		"policies":                      {[]string{group}, []string{"validatingadmissionpolicies"}, ""},
		"their names in another group":  {[]string{"example.com"}, []string{"validatingwebhookconfigurations"}, ""},
		"their versions in other terms": {[]string{group}, []string{"validatingwebhookconfigurations", "x"}, configurations},
	} {
		t.Run(name, func(t *testing.T) {
			for _, kind := range []v1alpha1.WebhookAdmissionType{validating, mutating, conversion} {
				w := describe("v.example.com", kind)
				rule := describe("v.example.com", validating).Rules[0]
				w.Rules = []admissionregistrationv1.RuleWithOperations{rule, rule}
				w.Rules[1].APIGroups, w.Rules[1].Resources = c.groups, c.resources
				require.Equal(t, c.want, internalserving.ProblemOfWebhooks(operator(w)), kind)
			}
		})
	}
}

// TestProblemsOfDescription contains changes of a description, and the problem that each causes. A change without a
// type applies to every type.
func TestProblemsOfDescription(t *testing.T) {
	long := strings.Repeat("a", 55) + ".b.example"
	rules := func(change func(r *admissionregistrationv1.RuleWithOperations)) func(w *description) {
		return func(w *description) { change(&w.Rules[0]) }
	}
	resources := func(names ...string) func(w *description) {
		return rules(func(r *admissionregistrationv1.RuleWithOperations) { r.Resources = names })
	}
	admission := []v1alpha1.WebhookAdmissionType{validating, mutating}
	all := append(slices.Clone(admission), conversion)
	type row struct {
		types  []v1alpha1.WebhookAdmissionType
		change func(w *description)
		want   string
	}
	const v = `webhook description "v.example.com": `
	for name, c := range map[string]row{
		"valid":   {all, func(*description) {}, ""},
		"no name": {all, func(w *description) { w.GenerateName = "" }, "webhook description without generateName"},
		"no deployment": {
			all, func(w *description) { w.DeploymentName = "" }, `webhook description "v.example.com" without deploymentName`,
		},
		"an unknown deployment": {
			all, func(w *description) { w.DeploymentName = "hot" }, `webhook description "v.example.com" names the unknown deployment "hot"`,
		},
		"an unknown type": {
			all, func(w *description) { w.Type = "Odd" }, `webhook description "v.example.com" has the unknown type "Odd"`,
		},
		"no type": {
			all, func(w *description) { w.Type = "" }, `webhook description "v.example.com" has the unknown type ""`,
		},
		"a port below":       {all, func(w *description) { w.ContainerPort = -1 }, v + "containerPort -1 is outside 1-65535"},
		"a port above":       {all, func(w *description) { w.ContainerPort = 65536 }, v + "containerPort 65536 is outside 1-65535"},
		"the last port":      {all, func(w *description) { w.ContainerPort = 65535 }, ""},
		"no port":            {all, func(w *description) { w.ContainerPort = 0 }, ""},
		"a target by number": {all, func(w *description) { w.TargetPort = new(intstr.FromInt32(9443)) }, ""},
		"a target by name":   {all, func(w *description) { w.TargetPort = new(intstr.FromString("webhook-server")) }, ""},
		"target 0": {
			all, func(w *description) { w.TargetPort = new(intstr.FromInt32(0)) }, v + "targetPort: must be between 1 and 65535, inclusive",
		},
		"a long target name": {
			all, func(w *description) { w.TargetPort = new(intstr.FromString("webhook-server-1")) },
			v + "targetPort: must be no more than 15 characters",
		},
		"an empty target name": {
			all, func(w *description) { w.TargetPort = new(intstr.FromString("")) },
			v + "targetPort: must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-); must contain at least one letter (a-z)",
		},
		"a target of no type": {
			all, func(w *description) { w.TargetPort = &intstr.IntOrString{Type: 7} }, v + "targetPort: is neither a number nor a name",
		},
		"no path":         {all, func(w *description) { w.WebhookPath = nil }, ""},
		"an empty path":   {all, func(w *description) { w.WebhookPath = new("") }, ""},
		"the root":        {all, func(w *description) { w.WebhookPath = new("/") }, ""},
		"a deep path":     {all, func(w *description) { w.WebhookPath = new("/a.b/c-d/") }, ""},
		"a relative path": {all, func(w *description) { w.WebhookPath = new("a") }, v + `webhookPath: "a" does not begin with /`},
		"no review version": {
			all, func(w *description) { w.AdmissionReviewVersions = nil }, v + "admissionReviewVersions: has neither v1 nor v1beta1",
		},
		"an old review version": {all, func(w *description) { w.AdmissionReviewVersions = []string{"v1beta1"} }, ""},
		"a new one beside":      {all, func(w *description) { w.AdmissionReviewVersions = []string{"v2", "v1"} }, ""},
		"a new one alone": {
			all, func(w *description) { w.AdmissionReviewVersions = []string{"v2"} }, v + "admissionReviewVersions: has neither v1 nor v1beta1",
		},
		"one twice": {
			all, func(w *description) { w.AdmissionReviewVersions = []string{"v1", "v1"} }, v + `admissionReviewVersions: "v1" is listed twice`,
		},
		"a name of two parts": {
			admission, func(w *description) { w.GenerateName = "example.com" },
			`webhook description "example.com": generateName: should be a domain with at least three segments separated by dots`,
		},
		"of a conversion":         {[]v1alpha1.WebhookAdmissionType{conversion}, func(w *description) { w.GenerateName = "Convert" }, ""},
		"a name of 63 characters": {admission, func(w *description) { w.GenerateName = long[2:] }, ""},
		"a name of 65 characters": {
			admission, func(w *description) { w.GenerateName = long },
			`webhook description "` + long + `": generateName: must be no more than 63 bytes`,
		},
		"no side effects said": {admission, func(w *description) { w.SideEffects = nil }, v + "sideEffects: is missing"},
		"some side effects": {
			admission, func(w *description) { w.SideEffects = new(admissionregistrationv1.SideEffectClassSome) },
			v + `sideEffects: "Some" is not one of ["None" "NoneOnDryRun"]`,
		},
		"none on dry runs": {
			admission, func(w *description) { w.SideEffects = new(admissionregistrationv1.SideEffectClassNoneOnDryRun) }, "",
		},
		"side effects of a conversion": {[]v1alpha1.WebhookAdmissionType{conversion}, func(w *description) { w.SideEffects = nil }, ""},
		"a failure policy": {
			admission, func(w *description) { w.FailurePolicy = new(admissionregistrationv1.FailurePolicyType("fail")) },
			v + `failurePolicy: "fail" is not one of ["Ignore" "Fail"]`,
		},
		"a match policy": {
			admission, func(w *description) { w.MatchPolicy = new(admissionregistrationv1.MatchPolicyType("")) },
			v + `matchPolicy: "" is not one of ["Exact" "Equivalent"]`,
		},
		"a reinvocation policy": {
			[]v1alpha1.WebhookAdmissionType{mutating},
			func(w *description) { w.ReinvocationPolicy = new(admissionregistrationv1.ReinvocationPolicyType("x")) },
			v + `reinvocationPolicy: "x" is not one of ["Never" "IfNeeded"]`,
		},
		"of a validating one": {
			[]v1alpha1.WebhookAdmissionType{validating},
			func(w *description) { w.ReinvocationPolicy = new(admissionregistrationv1.ReinvocationPolicyType("x")) }, "",
		},
		"a timeout of 0": {
			admission, func(w *description) { w.TimeoutSeconds = new(int32(0)) }, v + "timeoutSeconds: 0 is outside 1-30",
		},
		"a timeout of 31": {
			admission, func(w *description) { w.TimeoutSeconds = new(int32(31)) }, v + "timeoutSeconds: 31 is outside 1-30",
		},
		"a timeout of 30": {admission, func(w *description) { w.TimeoutSeconds = new(int32(30)) }, ""},
		"a selector": {admission, func(w *description) {
			w.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
		}, ""},
		"no rules": {admission, func(w *description) { w.Rules = nil }, ""},
		"an unknown operation": {admission, rules(func(r *admissionregistrationv1.RuleWithOperations) {
			r.Operations = []admissionregistrationv1.OperationType{"GET"}
		}), v + `rules[0].operations: "GET" is not one of ["*" "CREATE" "UPDATE" "DELETE" "CONNECT"]`},
		"no operation": {
			admission, rules(func(r *admissionregistrationv1.RuleWithOperations) { r.Operations = nil }), v + "rules[0].operations: is empty",
		},
		"all operations and one": {admission, rules(func(r *admissionregistrationv1.RuleWithOperations) {
			r.Operations = []admissionregistrationv1.OperationType{"*", "CREATE"}
		}), v + "rules[0].operations: * includes all others"},
		"no group": {
			admission, rules(func(r *admissionregistrationv1.RuleWithOperations) { r.APIGroups = nil }), v + "rules[0].apiGroups: is empty",
		},
		"no version": {
			admission, rules(func(r *admissionregistrationv1.RuleWithOperations) { r.APIVersions = nil }), v + "rules[0].apiVersions: is empty",
		},
		"all versions": {admission, rules(func(r *admissionregistrationv1.RuleWithOperations) { r.APIVersions = []string{"*"} }), ""},
		"all versions and one": {
			admission, rules(func(r *admissionregistrationv1.RuleWithOperations) { r.APIVersions = []string{"*", "v1"} }),
			v + "rules[0].apiVersions: * includes all others",
		},
		"an empty version": {
			admission, rules(func(r *admissionregistrationv1.RuleWithOperations) { r.APIVersions = []string{""} }),
			v + "rules[0].apiVersions: has an empty entry",
		},
		"a scope": {admission, rules(func(r *admissionregistrationv1.RuleWithOperations) {
			r.Scope = new(admissionregistrationv1.NamespacedScope)
		}), ""},
		"an unknown scope": {admission, rules(func(r *admissionregistrationv1.RuleWithOperations) {
			r.Scope = new(admissionregistrationv1.ScopeType("x"))
		}), v + `rules[0].scope: "x" is not one of ["*" "Cluster" "Namespaced"]`},
		"no resource":               {admission, resources(), v + "rules[0].resources: is empty"},
		"an empty resource":         {admission, resources("a", ""), v + "rules[0].resources: has an empty entry"},
		"all resources":             {admission, resources("*"), ""},
		"all resources and parts":   {admission, resources("*/*"), ""},
		"all of that and one":       {admission, resources("*/*", "a"), v + "rules[0].resources: */* includes all others"},
		"one and its parts":         {admission, resources("a", "a/*"), ""},
		"all and a part":            {admission, resources("*", "a/status"), ""},
		"all and one":               {admission, resources("*", "a"), v + "rules[0].resources: * includes a"},
		"all parts and one":         {admission, resources("a/*", "a/status"), v + "rules[0].resources: a/* includes a/status"},
		"a part of all, and of one": {admission, resources("*/status", "a/status"), v + "rules[0].resources: */status includes a/status"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, kind := range c.types {
				w := describe("v.example.com", kind)
				c.change(&w)
				require.Equal(t, c.want, internalserving.ProblemOfWebhooks(operator(w)), kind)
			}
		})
	}
	for field, w := range map[string]description{
		"webhookPath": describe("v.example.com", validating, func(w *description) { w.WebhookPath = new("/a//b") }),
		"objectSelector": describe("v.example.com", validating, func(w *description) {
			w.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"!": ""}}
		}),
		"generateName": describe("v.Example.com", validating),
	} {
		require.Contains(
			t,
			internalserving.ProblemOfWebhooks(operator(w)),
			"xample.com\": "+field+": ",
			"and why, in the words of the API's validation",
		)
	}
}

// TestProblemsOfSeveralDescriptions checks problems of the descriptions of a CSV taken together.
func TestProblemsOfSeveralDescriptions(t *testing.T) {
	const repeated = "CSV contains repeated WebhookDescription name"
	const modes = "unable to manage conversion webhook: CSVs with conversion webhooks must support only AllNamespaces"
	mode := func(kind v1alpha1.InstallModeType, supported bool) v1alpha1.InstallMode {
		return v1alpha1.InstallMode{Type: kind, Supported: supported}
	}
	converts := func(modes ...v1alpha1.InstallMode) *v1alpha1.ClusterServiceVersion {
		c := operator(describe("c", conversion))
		c.Spec.InstallModes = modes
		return c
	}
	of := func(crds ...string) *v1alpha1.ClusterServiceVersion {
		return operator(describe("c", conversion, func(w *description) { w.ConversionCRDs = crds }))
	}
	deployments := func(a, b string) *v1alpha1.ClusterServiceVersion {
		c := operator(
			describe("a.example.com", validating, func(w *description) { w.DeploymentName = a }),
			describe("b.example.com", validating, func(w *description) { w.DeploymentName = b }),
		)
		c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = []v1alpha1.StrategyDeploymentSpec{
			csvtest.DeploymentSpec(a),
			csvtest.DeploymentSpec(b),
		}
		return c
	}
	target := func(port int32, target intstr.IntOrString) func(w *description) {
		return func(w *description) { w.ContainerPort, w.TargetPort = port, &target }
	}
	withAPI := func(port int32, w description) *v1alpha1.ClusterServiceVersion {
		c := operator(w)
		c.Spec.APIServiceDefinitions.Owned = []v1alpha1.APIServiceDescription{{DeploymentName: "cool", ContainerPort: port}}
		return c
	}
	long := strings.Repeat("a", 56)
	for name, c := range map[string]struct {
		csv  *v1alpha1.ClusterServiceVersion
		want string
	}{
		"none":                         {operator(), ""},
		"one of each":                  {operator(everything()...), ""},
		"a name twice":                 {operator(describe("v.example.com", validating), describe("v.example.com", validating)), repeated},
		"a name twice, by type":        {operator(describe("v.example.com", validating), describe("v.example.com", mutating)), repeated},
		"a name twice, for conversion": {operator(describe("v.example.com", validating), describe("v.example.com", conversion)), repeated},
		"the second is bad": {
			operator(describe("v.example.com", validating), describe("", mutating)), "webhook description without generateName",
		},
		"no mode":                   {converts(), modes},
		"all namespaces":            {converts(mode("AllNamespaces", true)), ""},
		"no supported mode":         {converts(mode("AllNamespaces", false)), modes},
		"another mode":              {converts(mode("OwnNamespace", true)), modes},
		"another mode beside":       {converts(mode("AllNamespaces", true), mode("OwnNamespace", true)), modes},
		"an unsupported one beside": {converts(mode("OwnNamespace", false), mode("AllNamespaces", true)), ""},
		"no CRD":                    {of(), "unable to manager conversion webhook: conversion webhook must have at least one CRD specified"},
		"a CRD of another CSV":      {of("cools.example.com", "pods"), "csv cool.v1 does not own CRD pods"},
		"a CRD twice":               {of("cools.example.com", "cools.example.com"), ""},
		"a CRD of two": {
			operator(describe("c", conversion), describe("d", conversion)),
			`webhook description "d": conversionCRDs: CRD cools.example.com is already converted by webhook description "c"`,
		},
		"two Deployments":     {deployments("a", "b"), ""},
		"one Service for two": {deployments("a.b", "a-b"), `deployments "a-b" and "a.b" would both be called as Service "a-b-service"`},
		"a long Deployment": {
			deployments("a", long),
			`deployment "` + long + `" serves webhooks or APIs, but "` +
				long + `-service" cannot be the name of a Service: must be no more than 63 characters`,
		},
		"ports to one target": {
			operator(
				describe("a.example.com", validating, target(443, intstr.FromInt32(9443))),
				describe("b.example.com", validating, target(444, intstr.FromInt32(9443))),
			),
			"",
		},
		"a port to one target": {
			operator(
				describe("a.example.com", validating, target(443, intstr.FromInt32(9443))),
				describe("b.example.com", validating, target(0, intstr.FromString("9443"))),
			),
			"webhook description \"b.example.com\": targetPort: must contain at least one letter (a-z)",
		},
		"a port to two targets": {operator(
			describe("a.example.com", validating, target(443, intstr.FromInt32(9443))), describe("b.example.com", validating),
		),
			`webhook description "b.example.com": targetPort: port 443 of deployment "cool" already leads to 9443, not to 443`},
		"a port that an API has": {withAPI(0, describe("a.example.com", validating)), ""},
		"a port that an API has on another target": {withAPI(443, describe("a.example.com", validating, target(443, intstr.FromString("https")))),
			`webhook description "a.example.com": targetPort: port 443 of deployment "cool" already leads to 443, not to https`},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, internalserving.ProblemOfWebhooks(c.csv)) })
	}
}

func TestPublishedWebhooksAreValid(t *testing.T) {
	found := 0
	for _, b := range realdata.ClusterServiceVersions(t) {
		c := b.Objects[0].(*v1alpha1.ClusterServiceVersion)
		found += len(c.Spec.WebhookDefinitions)
		require.Empty(t, internalserving.ProblemOfWebhooks(c), "%s %s", b.Operator, b.Version)
	}
	require.Positive(t, found)
}
