// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"cmp"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/olmcore/olm/olmcore"
)

// Image is that of a container of a Deployment.
type Image struct {
	Namespace  string `json:"namespace"`
	Deployment string `json:"deployment"`
	Container  string `json:"container"`
	// Before and After are the same where the Deployment changes and the image does not; empty where there is no such
	// container.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// Restart is a Deployment whose Pods are replaced.
type Restart struct {
	Namespace  string `json:"namespace"`
	Deployment string `json:"deployment"`
	// Replicas is how many Pods are replaced; Recreate: all are stopped before one is started, so that the operator is
	// away meanwhile.
	Replicas int32 `json:"replicas"`
	Recreate bool  `json:"recreate,omitempty"`
	// Fields are those of the Pod template that differ, at most MaxFields.
	Fields []Field `json:"fields"`
}

func takeDeployment(p *Preview, of pair) {
	before, after := typed[appsv1.Deployment](of)
	if before == nil && after == nil {
		return
	}
	was, is := &appsv1.Deployment{}, &appsv1.Deployment{}
	if before != nil {
		was = before
	}
	if after != nil {
		is = after
	}
	if before != nil && after != nil && equality.Semantic.DeepEqual(was.Spec, is.Spec) {
		return
	}
	p.Images = append(p.Images, imagesOf(of, was.Spec.Template.Spec, is.Spec.Template.Spec)...)
	if before == nil || after == nil || equality.Semantic.DeepEqual(was.Spec.Template, is.Spec.Template) {
		return
	}
	r := Restart{Namespace: of.key.Namespace, Deployment: of.key.Name, Replicas: 1,
		Recreate: is.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType, Fields: []Field{}}
	if was.Spec.Replicas != nil {
		r.Replicas = *was.Spec.Replicas
	}
	compare("", templateOf(was), templateOf(is), func(f Field) {
		if len(r.Fields) < MaxFields {
			r.Fields = append(r.Fields, f)
		}
	})
	p.Restarts = append(p.Restarts, r)
}

func templateOf(d *appsv1.Deployment) any {
	spec, _ := meaning(d)["spec"].(map[string]any)
	return spec["template"]
}

// imagesOf pairs the images of containers of the same name.
func imagesOf(of pair, was, is corev1.PodSpec) []Image {
	before, after := imagesByName(was), imagesByName(is)
	var all []Image
	for name, image := range before {
		all = append(all, Image{of.key.Namespace, of.key.Name, name, image, after[name]})
	}
	for name, image := range after {
		if _, both := before[name]; !both {
			all = append(all, Image{of.key.Namespace, of.key.Name, name, "", image})
		}
	}
	slices.SortFunc(all, func(a, b Image) int { return strings.Compare(a.Container, b.Container) })
	return all
}

func imagesByName(spec corev1.PodSpec) map[string]string {
	all := map[string]string{}
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		all[c.Name] = c.Image
	}
	return all
}

// Webhook is an admission webhook.
type Webhook struct {
	// Kind is ValidatingWebhookConfiguration or MutatingWebhookConfiguration, Name that of the webhook in it.
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Change Change `json:"change"`
	// Rules are what it is asked about, each as "VERBS RESOURCES of GROUPS"; FailurePolicy is what happens when it does
	// not answer. They are those that will be, of one that goes those that were.
	Rules         []string `json:"rules"`
	FailurePolicy string   `json:"failurePolicy"`
}

// webhooksOf pairs the webhooks of all configurations: another version has configurations of its own.
func webhooksOf(pairs []pair) []Webhook {
	was, is := map[hookKey]Webhook{}, map[hookKey]Webhook{}
	for _, p := range pairs {
		hooksOf(p.before, was)
		hooksOf(p.after, is)
	}
	all := []Webhook{}
	for key, h := range is {
		before, existed := was[key]
		switch {
		case !existed:
			h.Change = Created
		case equality.Semantic.DeepEqual(before, h):
			continue
		default:
			h.Change = Changed
		}
		all = append(all, h)
	}
	for key, h := range was {
		if _, stays := is[key]; !stays {
			h.Change = Deleted
			all = append(all, h)
		}
	}
	slices.SortFunc(all, func(a, b Webhook) int {
		return cmp.Or(
			strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name), cmp.Compare(order[a.Change], order[b.Change]),
			slices.Compare(a.Rules, b.Rules), strings.Compare(a.FailurePolicy, b.FailurePolicy),
		)
	})
	return all
}

// hookKey has the number of a webhook, counted from 0, among those of its name: names are unique in one configuration
// alone.
type hookKey struct {
	kind, name string
	number     int
}

// hooksOf adds the webhooks of a configuration.
func hooksOf(o olmcore.Object, all map[hookKey]Webhook) {
	add := func(kind, name string, policy *admissionregistrationv1.FailurePolicyType, rules []admissionregistrationv1.RuleWithOperations) {
		h := Webhook{Kind: kind, Name: name, FailurePolicy: string(admissionregistrationv1.Fail), Rules: []string{}}
		if policy != nil {
			h.FailurePolicy = string(*policy)
		}
		for _, r := range rules {
			verbs := make([]string, len(r.Operations))
			for i, operation := range r.Operations {
				verbs[i] = string(operation)
			}
			text := strings.Join(verbs, ",") + " " + strings.Join(r.Resources, ",")
			if groups := strings.Join(r.APIGroups, ","); groups != "" {
				text += " of " + groups
			}
			h.Rules = append(h.Rules, text)
		}
		key := hookKey{kind: kind, name: name}
		for _, taken := all[key]; taken; _, taken = all[key] {
			key.number++
		}
		all[key] = h
	}
	switch c := o.(type) {
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		for _, w := range c.Webhooks {
			add("ValidatingWebhookConfiguration", w.Name, w.FailurePolicy, w.Rules)
		}
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		for _, w := range c.Webhooks {
			add("MutatingWebhookConfiguration", w.Name, w.FailurePolicy, w.Rules)
		}
	}
}
