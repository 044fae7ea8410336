// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// webhookError says what is wrong with the webhook descriptions; empty when
// nothing is.
func webhookError(c *version) string {
	list := c.Spec.WebhookDefinitions
	for i := range list {
		for j := range list[:i] {
			if list[i].GenerateName == list[j].GenerateName {
				return "CSV contains repeated WebhookDescription name"
			}
		}
	}
	for i := range list {
		if problem := describeWebhookProblem(c, &list[i]); problem != "" {
			return problem
		}
	}
	return ""
}

func describeWebhookProblem(c *version, w *v1alpha1.WebhookDescription) string {
	for i := range w.Rules {
		if problem := webhookRuleError(&w.Rules[i]); problem != "" {
			return problem
		}
	}
	switch {
	case w.GenerateName == "":
		return "webhook description without generateName"
	case w.DeploymentName == "":
		return fmt.Sprintf("webhook description %q without deploymentName", w.GenerateName)
	case !declaresDeployment(c, w.DeploymentName):
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
// Differs: the resource names of the webhook configurations are refused too, not
// their kinds alone.
func webhookRuleError(r *admissionregistrationv1.RuleWithOperations) string {
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
