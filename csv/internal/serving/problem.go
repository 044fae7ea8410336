// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/olmcore/olm/csv/internal/model"
)

// description is the description of one webhook in a CSV.
type description = v1alpha1.WebhookDescription

// defaultPort is the port of a Service when a description has none.
//
// Differs: OLM writes port 0, which the API server rejects.
const defaultPort = 443

func port(p int32) int32 { return cmp.Or(p, defaultPort) }

// ProblemOfWebhooks returns a message about the first invalid webhook description of a CSV, or an empty string if all
// are valid. The message names the description and its field. A description is also invalid if the API server would
// always reject its webhook.
//
// Source: operator-lifecycle-manager pkg/controller/install/webhook.go.
// Differs: before an installation, OLM checks only for repeated names and forbidden rules. It retries the installation
// of other invalid webhooks endlessly. This library rejects all invalid descriptions.
func ProblemOfWebhooks(c *model.CSV) string {
	descriptions := c.Spec.WebhookDefinitions
	if len(descriptions) == 0 {
		return ""
	}
	seen := sets.New[string]()
	for i := range descriptions {
		if seen.Has(descriptions[i].GenerateName) {
			return "CSV contains repeated WebhookDescription name"
		}
		seen.Insert(descriptions[i].GenerateName)
	}
	deployments := model.DeploymentNames(c)
	for i := range descriptions {
		w := &descriptions[i]
		if problem := cmp.Or(forbidden(w), unknownDeployment(w, deployments), malformed(w)); problem != "" {
			return problem
		}
	}
	return cmp.Or(servicesProblem(c), portsProblem(c), conversionProblem(c))
}

// Problem returns a message about the first invalid webhook description, or about a rule that the OperatorGroup does
// not allow. It returns an empty string if there is no problem. A rule is allowed if an existing configuration contains
// it. It also returns an empty string if s is the zero value.
func (s Clients) Problem() string { return problemOf(factsOf(s)) }

func problemOf(f *facts) string { return cmp.Or(ProblemOfWebhooks(f.source.CSV), rulesProblem(f)) }

// problemf returns a message about a field of a description.
func problemf(w *description, field, format string, args ...any) string {
	return fmt.Sprintf("webhook description %q: %s: ", w.GenerateName, field) + fmt.Sprintf(format, args...)
}

func unknownDeployment(w *description, deployments sets.Set[string]) string {
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
	return ""
}

// check is the check of one field of a description. problem returns why the API server would reject the field, or an
// empty string.
type check struct {
	field   string
	problem func(w *description) string
}

// common contains the checks of every description. admission contains further checks of admission webhooks.
var (
	common = []check{
		{"targetPort", func(w *description) string { return targetPortProblem(w.TargetPort) }},
		{"webhookPath", func(w *description) string { return pathProblem(w.WebhookPath) }},
		{"admissionReviewVersions", func(w *description) string { return reviewVersionsProblem(w.AdmissionReviewVersions) }},
	}
	admission = []check{
		{"generateName", nameProblem},
		{"sideEffects", func(w *description) string {
			if w.SideEffects == nil {
				return "is missing"
			}
			return oneOf(w.SideEffects, admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.SideEffectClassNoneOnDryRun)
		}},
		{"failurePolicy", func(w *description) string {
			return oneOf(w.FailurePolicy, admissionregistrationv1.Ignore, admissionregistrationv1.Fail)
		}},
		{"matchPolicy", func(w *description) string {
			return oneOf(w.MatchPolicy, admissionregistrationv1.Exact, admissionregistrationv1.Equivalent)
		}},
		{"reinvocationPolicy", func(w *description) string {
			if w.Type != v1alpha1.MutatingAdmissionWebhook {
				return "" // only mutating webhooks have it
			}
			return oneOf(w.ReinvocationPolicy, admissionregistrationv1.NeverReinvocationPolicy, admissionregistrationv1.IfNeededReinvocationPolicy)
		}},
		{"timeoutSeconds", func(w *description) string {
			t := w.TimeoutSeconds
			if t != nil && (*t < 1 || *t > 30) {
				return fmt.Sprintf("%d is outside 1-30", *t)
			}
			return ""
		}},
		{"objectSelector", func(w *description) string { return selectorProblem(w.ObjectSelector) }},
	}
)

// malformed returns why the API server would reject a description. It is empty if the description is valid.
func malformed(w *description) string {
	checks := common
	switch w.Type {
	case v1alpha1.ValidatingAdmissionWebhook, v1alpha1.MutatingAdmissionWebhook:
		checks = slices.Concat(common, admission)
	case v1alpha1.ConversionWebhook:
	default:
		return fmt.Sprintf("webhook description %q has the unknown type %q", w.GenerateName, w.Type)
	}
	for _, check := range checks {
		if problem := check.problem(w); problem != "" {
			return problemf(w, check.field, "%s", problem)
		}
	}
	if w.Type == v1alpha1.ConversionWebhook {
		return ""
	}
	for i := range w.Rules {
		if path, problem := ruleProblem(&w.Rules[i]); problem != "" {
			return problemf(w, fmt.Sprintf("rules[%d].%s", i, path), "%s", problem)
		}
	}
	return ""
}

// nameProblem checks generateName, which is the name of the webhook, a label value, and the prefix of a configuration's
// name.
func nameProblem(w *description) string {
	if errs := validation.IsFullyQualifiedName(field.NewPath("generateName"), w.GenerateName); len(errs) > 0 {
		return errs[0].Detail
	}
	return strings.Join(validation.IsValidLabelValue(w.GenerateName), "; ")
}

func oneOf[T ~string](have *T, allowed ...T) string {
	if have == nil || slices.Contains(allowed, *have) {
		return ""
	}
	return fmt.Sprintf("%q is not one of %q", *have, allowed)
}

func selectorProblem(s *metav1.LabelSelector) string {
	if errs := metav1validation.ValidateLabelSelector(s, metav1validation.LabelSelectorValidationOptions{}, nil); len(errs) > 0 {
		return errs[0].Error()
	}
	return ""
}

func targetPortProblem(p *intstr.IntOrString) string {
	switch {
	case p == nil:
		return ""
	case p.Type == intstr.Int:
		return strings.Join(validation.IsValidPortNum(int(p.IntVal)), "; ")
	case p.Type == intstr.String:
		return strings.Join(validation.IsValidPortName(p.StrVal), "; ")
	}
	return "is neither a number nor a name"
}

func pathProblem(path *string) string {
	if path == nil || *path == "" || *path == "/" {
		return ""
	}
	rest, rooted := strings.CutPrefix(*path, "/")
	if !rooted {
		return fmt.Sprintf("%q does not begin with /", *path)
	}
	for segment := range strings.SplitSeq(strings.TrimSuffix(rest, "/"), "/") {
		if errs := validation.IsDNS1123Subdomain(segment); len(errs) > 0 {
			return fmt.Sprintf("%q: %s", *path, errs[0])
		}
	}
	return ""
}

func reviewVersionsProblem(versions []string) string {
	seen := sets.New[string]()
	for _, v := range versions {
		if errs := validation.IsDNS1035Label(v); len(errs) > 0 {
			return fmt.Sprintf("%q: %s", v, errs[0])
		}
		if seen.Has(v) {
			return fmt.Sprintf("%q is listed twice", v)
		}
		seen.Insert(v)
	}
	if !seen.HasAny("v1", "v1beta1") {
		return "has neither v1 nor v1beta1"
	}
	return ""
}

// servicesProblem returns a message about a Deployment whose Service name is invalid, or is that of another Deployment.
func servicesProblem(c *model.CSV) string {
	first := map[string]string{}
	for _, deployment := range DeploymentNames(c) {
		service := ServiceName(deployment)
		if errs := validation.IsDNS1123Label(service); len(errs) > 0 {
			return fmt.Sprintf("deployment %q serves webhooks or APIs, but %q cannot be the name of a Service: %s", deployment, service, errs[0])
		}
		if other, taken := first[service]; taken {
			return fmt.Sprintf("deployments %q and %q would both be called as Service %q", other, deployment, service)
		}
		first[service] = deployment
	}
	return ""
}

// portsProblem returns a message about a Service port with two different target ports.
func portsProblem(c *model.CSV) string {
	type key struct {
		deployment string
		port       int32
	}
	targets := map[key]intstr.IntOrString{}
	for _, d := range c.Spec.APIServiceDefinitions.Owned {
		targets[key{d.DeploymentName, port(d.ContainerPort)}] = intstr.FromInt32(port(d.ContainerPort))
	}
	for i := range c.Spec.WebhookDefinitions {
		w := &c.Spec.WebhookDefinitions[i]
		k, target := key{w.DeploymentName, port(w.ContainerPort)}, intstr.FromInt32(port(w.ContainerPort))
		if w.TargetPort != nil {
			target = *w.TargetPort
		}
		other, taken := targets[k]
		if taken && other.String() != target.String() {
			return problemf(w, "targetPort", "port %d of deployment %q already leads to %s, not to %s",
				k.port, k.deployment, other.String(), target.String())
		}
		targets[k] = target
	}
	return ""
}

// conversionProblem returns what is wrong with the conversion webhooks of a CSV, or an empty string.
//
// Source: operator-lifecycle-manager pkg/controller/install/webhook.go.
// Differs: OLM accepts a CSV without install modes.
func conversionProblem(c *model.CSV) string {
	ours, by := model.OwnedCRDNames(c), map[string]*description{}
	for i := range c.Spec.WebhookDefinitions {
		w := &c.Spec.WebhookDefinitions[i]
		switch {
		case w.Type != v1alpha1.ConversionWebhook:
			continue
		case !supportsOnlyAllNamespaces(c):
			return "unable to manage conversion webhook: CSVs with conversion webhooks must support only AllNamespaces"
		case len(w.ConversionCRDs) == 0:
			return "unable to manager conversion webhook: conversion webhook must have at least one CRD specified"
		}
		for _, name := range w.ConversionCRDs {
			switch {
			case !ours.Has(name):
				return fmt.Sprintf("csv %s does not own CRD %s", c.Name, name)
			case by[name] != nil && by[name] != w:
				return problemf(w, "conversionCRDs", "CRD %s is already converted by webhook description %q", name, by[name].GenerateName)
			}
			by[name] = w
		}
	}
	return ""
}

func supportsOnlyAllNamespaces(c *model.CSV) (all bool) {
	for _, mode := range c.Spec.InstallModes {
		switch {
		case !mode.Supported:
		case mode.Type != v1alpha1.InstallModeTypeAllNamespaces:
			return false
		default:
			all = true
		}
	}
	return all
}
