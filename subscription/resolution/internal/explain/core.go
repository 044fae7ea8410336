// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/olmcore/olm/subscription/resolution/internal/model"
	"github.com/olmcore/olm/subscription/resolution/internal/search"
)

// CoreOf returns a Core that describes a Contradiction.
func CoreOf(v *search.View, found search.Contradiction) model.Core {
	c := model.Core{Minimal: found.Minimal, Rules: v.RulesOf(found.Rules, v.Scope)}
	c.Message = v.Message(c.Rules)
	if text := v.Unavailable(found.Rules); text != "" {
		c.Error, c.Message = true, text
	}
	first := ""
	for _, r := range c.Rules {
		if r.Kind == model.SubscriptionExists {
			c.Subscriptions = append(c.Subscriptions, r.Subscription)
		}
	}
	slices.Sort(c.Subscriptions)
	if len(c.Subscriptions) > 0 {
		first = c.Subscriptions[0]
	}
	impossible := slices.IndexFunc(c.Rules, func(r model.Rule) bool { return r.Kind == model.SubscriptionImpossible })
	switch subject := subjectOf(c.Subscriptions, v.In.Namespace); {
	case c.Error:
		c.Summary = fmt.Sprintf("%s cannot be resolved before the catalogs are complete: %s.", subject, c.Message)
	case impossible >= 0:
		s := v.SubscriptionNamed(c.Rules[impossible].Subscription)
		c.Summary = impossibilityOf(s).sentence(v, s)
	default:
		c.Summary = fmt.Sprintf("%s cannot be resolved: %s.", subject, describe(v, c.Rules, first))
	}
	return c
}

// GivenUp returns a Core for Subscriptions that could not be decided within the given number of steps. If subs is
// empty, the Core is about the operators without Subscription.
func GivenUp(v *search.View, subs []*model.Subscription, steps int) model.Core {
	c := model.Core{Error: true, Message: fmt.Sprintf("resolution stopped after %d steps", v.Policy.Steps())}
	if len(subs) == 0 {
		c.Summary = fmt.Sprintf("Namespace %s was not decided within %d steps: "+
			"its operators without Subscription exclude each other in too many ways.", v.In.Namespace, steps)
		return c
	}
	var candidates []string
	for _, s := range subs {
		name := s.Object.Name
		c.Subscriptions = append(c.Subscriptions, name)
		c.Rules = append(c.Rules, v.Exists(s))
		candidates = append(candidates, candidatesInWords(s))
		c.Remedies = append(c.Remedies, model.Remedy{Code: model.ChangeChannel, Object: name, Message: fmt.Sprintf("Let Subscription %s follow "+
			"a channel with fewer bundles, or name one in spec.startingCSV; or resolve with a higher Policy.MaxSteps.", name)})
	}
	slices.Sort(c.Subscriptions)
	slices.SortFunc(c.Rules, func(a, b model.Rule) int { return strings.Compare(a.Text, b.Text) })
	c.Summary = fmt.Sprintf("%s was not decided within %d steps: %s was tried, together with what older Subscriptions can have.",
		subjectOf(c.Subscriptions, v.In.Namespace), steps, someNames(candidates))
	return c
}

func candidatesInWords(s *model.Subscription) string {
	var list []string
	for r := range s.Choice.Refs {
		list = append(list, r.Entry.Name)
	}
	if len(list) > 2 {
		return fmt.Sprintf("each of the %d candidates from %s to %s", len(list), list[0], list[len(list)-1])
	}
	return model.Enumerate(list, " and ")
}

func subjectOf(subscriptions []string, namespace string) string {
	switch len(subscriptions) {
	case 0:
		return "Namespace " + namespace
	case 1:
		return "Subscription " + subscriptions[0]
	}
	return "Together, Subscriptions " + someNames(subscriptions)
}
