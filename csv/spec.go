// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/olmcore"
)

// specError says what in a CSV makes it unusable whatever the cluster offers; empty when nothing does.
func specError(c *version) string {
	if len(c.Name) > validation.LabelValueMaxLength {
		return fmt.Sprintf("name %q has %d characters; at most %d are possible because it is used as a label value", c.Name, len(c.Name), validation.LabelValueMaxLength)
	}
	if !owned.IsLabelValue(c.Name) {
		return fmt.Sprintf("name %q cannot be used as a label value", c.Name)
	}
	for _, d := range slices.Concat(c.Spec.CustomResourceDefinitions.Owned, c.Spec.CustomResourceDefinitions.Required) {
		if problem := definitionError(d); problem != "" {
			return problem
		}
	}
	seen := map[string]bool{}
	for i, d := range c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		if d.Name == "" {
			return fmt.Sprintf("deployments[%d]: name is empty", i)
		}
		if seen[d.Name] {
			return fmt.Sprintf("deployment %q listed twice", d.Name)
		}
		seen[d.Name] = true
		if problem := deploymentError(d); problem != "" {
			return problem
		}
	}
	spec := &c.Spec.InstallStrategy.StrategySpec
	if i := slices.IndexFunc(spec.Permissions, hasNoAccount); i >= 0 {
		return fmt.Sprintf("permissions[%d]: serviceAccountName is empty", i)
	}
	if i := slices.IndexFunc(spec.ClusterPermissions, hasNoAccount); i >= 0 {
		return fmt.Sprintf("clusterPermissions[%d]: serviceAccountName is empty", i)
	}
	return ""
}

func hasNoAccount(p v1alpha1.StrategyDeploymentPermissions) bool { return p.ServiceAccountName == "" }

func definitionError(d v1alpha1.CRDDescription) string {
	plural, group, _ := strings.Cut(d.Name, ".")
	switch {
	case plural == "" || group == "":
		return fmt.Sprintf("invalid CRD name %q: want <plural>.<group>", d.Name)
	case d.Version == "":
		return fmt.Sprintf("CRD %s is described without a version", d.Name)
	case d.Kind == "":
		return fmt.Sprintf("CRD %s is described without a kind", d.Name)
	}
	return ""
}

func deploymentError(d v1alpha1.StrategyDeploymentSpec) string {
	template := &d.Spec.Template
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	switch {
	case d.Spec.Selector == nil || len(d.Spec.Selector.MatchLabels)+len(d.Spec.Selector.MatchExpressions) == 0:
		return fmt.Sprintf("deployment %q has no selector", d.Name)
	case err != nil || !selector.Matches(labels.Set(template.Labels)):
		return fmt.Sprintf("deployment %q: the selector does not match the labels of its template", d.Name)
	case len(template.Spec.Containers) == 0:
		return fmt.Sprintf("deployment %q has no containers", d.Name)
	}
	return ""
}

// strategyError says why the install strategy cannot be used at all; empty when it can.
func strategyError(c *version) string {
	if c.Spec.InstallStrategy.StrategyName != v1alpha1.InstallStrategyNameDeployment {
		return "unrecognized install strategy"
	}
	spec := &c.Spec.InstallStrategy.StrategySpec
	for _, p := range slices.Concat(spec.Permissions, spec.ClusterPermissions) {
		for _, rule := range p.Rules {
			if problem := ruleError(rule); problem != "" {
				return "rule invalid: " + problem
			}
		}
	}
	return ""
}

func ruleError(r rbacv1.PolicyRule) string {
	switch {
	case len(r.Verbs) == 0:
		return "policy rule must have at least one verb"
	case len(r.NonResourceURLs) > 0 && len(r.APIGroups)+len(r.Resources)+len(r.ResourceNames) > 0:
		return "rule cannot apply to both regular resources and non-resource URLs"
	}
	return ""
}

// webhookError says what is wrong with the webhook descriptions; empty when nothing is.
func webhookError(c *version) string {
	seen := map[string]bool{}
	for _, w := range c.Spec.WebhookDefinitions {
		if seen[w.GenerateName] {
			return "CSV contains repeated WebhookDescription name"
		}
		seen[w.GenerateName] = true
	}
	deployments := owned.Deployments(c)
	for _, w := range c.Spec.WebhookDefinitions {
		if problem := webhookDescriptionError(w, deployments); problem != "" {
			return problem
		}
	}
	return ""
}

func webhookDescriptionError(w v1alpha1.WebhookDescription, deployments sets.Set[string]) string {
	for _, r := range w.Rules {
		if problem := webhookRuleError(r); problem != "" {
			return problem
		}
	}
	switch {
	case w.GenerateName == "":
		return "webhook description without generateName"
	case w.DeploymentName == "":
		return fmt.Sprintf("webhook description %q without deploymentName", w.GenerateName)
	case !deployments.Has(w.DeploymentName):
		return fmt.Sprintf("webhook description %q names the unknown deployment %q", w.GenerateName, w.DeploymentName)
	case w.ContainerPort < 0 || w.ContainerPort > 65535:
		return fmt.Sprintf("webhook description %q: containerPort %d is outside 1-65535", w.GenerateName, w.ContainerPort)
	}
	switch w.Type {
	case v1alpha1.ValidatingAdmissionWebhook, v1alpha1.MutatingAdmissionWebhook, v1alpha1.ConversionWebhook:
		return ""
	}
	return fmt.Sprintf("webhook description %q has the unknown type %q", w.GenerateName, w.Type)
}

// webhookRuleError refuses webhooks that could lock the cluster up.
//
// Source: operator-lifecycle-manager pkg/controller/install/webhook.go, ValidWebhookRules.
// Differs: the resource names of the webhook configurations are refused too, not their kinds alone.
func webhookRuleError(r admissionregistrationv1.RuleWithOperations) string {
	switch {
	case slices.Contains(r.APIGroups, "*"):
		return "webhook rules cannot include all groups"
	case slices.Contains(r.APIGroups, v1alpha1.GroupName):
		return "webhook rules cannot include the OLM group"
	case slices.Contains(r.APIGroups, admissionregistrationv1.GroupName) && slices.ContainsFunc(r.Resources, isWebhookConfiguration):
		return "webhook rules cannot include MutatingWebhookConfiguration or ValidatingWebhookConfiguration resources"
	}
	return ""
}

func isWebhookConfiguration(resource string) bool {
	resource, _, _ = strings.Cut(resource, "/")
	switch strings.ToLower(resource) {
	case "*", "mutatingwebhookconfiguration", "validatingwebhookconfiguration",
		"mutatingwebhookconfigurations", "validatingwebhookconfigurations":
		return true
	}
	return false
}

// unknownModes names the install modes that the API does not have.
func unknownModes(c *version) []olmcore.Diagnostic {
	var said []olmcore.Diagnostic
	for i, mode := range c.Spec.InstallModes {
		switch mode.Type {
		case v1alpha1.InstallModeTypeOwnNamespace, v1alpha1.InstallModeTypeSingleNamespace,
			v1alpha1.InstallModeTypeMultiNamespace, v1alpha1.InstallModeTypeAllNamespaces:
		default:
			said = append(said, olmcore.Diagnose(olmcore.Warning, ReasonUnknownInstallMode, olmcore.RefOf(c), fmt.Sprintf("spec.installModes[%d].type", i),
				"install mode %q is unknown and counts for nothing", mode.Type))
		}
	}
	return said
}

// kindMismatches names the descriptions whose CRD has another kind. They count all the same: OLM compares name and
// version alone.
func kindMismatches(c *version, definitions []*apiextensionsv1.CustomResourceDefinition) []olmcore.Diagnostic {
	var said []olmcore.Diagnostic
	check := func(list []v1alpha1.CRDDescription, path string) {
		for i, d := range list {
			if crd, ok := owned.Find(definitions, "", d.Name); ok && crd.Spec.Names.Kind != d.Kind {
				said = append(said, olmcore.Diagnose(olmcore.Warning, ReasonCRDKindMismatch, olmcore.RefOf(c),
					fmt.Sprintf("spec.customresourcedefinitions.%s[%d].kind", path, i),
					"the kind of CRD %s is %s, not %s", d.Name, crd.Spec.Names.Kind, d.Kind))
			}
		}
	}
	check(c.Spec.CustomResourceDefinitions.Owned, "owned")
	check(c.Spec.CustomResourceDefinitions.Required, "required")
	return said
}

// notInstalled says what this version of the library leaves to the user.
func notInstalled(c *version) []olmcore.Diagnostic {
	var said []olmcore.Diagnostic
	say := func(reason, path, what string) {
		said = append(said, olmcore.Diagnose(olmcore.Warning, reason, olmcore.RefOf(c), path,
			"%s and their serving certificates are not installed by this version of the library", what))
	}
	if len(c.Spec.APIServiceDefinitions.Owned) > 0 {
		say(ReasonAPIServicesNotInstalled, "spec.apiservicedefinitions.owned", "owned APIServices")
	}
	if len(c.Spec.WebhookDefinitions) > 0 {
		say(ReasonWebhooksNotInstalled, "spec.webhookdefinitions", "webhooks")
	}
	return said
}
