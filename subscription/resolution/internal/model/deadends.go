// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/olmcore/olm/subscription/resolution/internal/content"
)

// maxDeadEnds is the number of dead ends that a text names.
const maxDeadEnds = 3

// missingUpgrade explains why none of the channels upgrades the installed operator of a Subscription. A dead end is an
// entry that replaces or skips the installed operator, or has a skipRange for it, but is no candidate. The text names
// the dead ends and the reason for each.
func missingUpgrade(s *Subscription, channels []*content.ChannelIndex) string {
	installed := s.Current.Entry
	where := "channel " + channels[0].Name
	if len(channels) > 1 {
		where = "package " + s.Pkg.Name
	}
	var deadEnds []*content.Entry
	for _, ch := range channels {
		for _, e := range ch.ByName {
			if e.Name != installed.Name && EdgeFrom(installed, e) != "" {
				deadEnds = append(deadEnds, e)
			}
		}
	}
	if len(deadEnds) == 0 {
		return fmt.Sprintf("no entry of %s replaces, skips or has a skipRange for %s", where, installed.Name)
	}
	slices.SortFunc(deadEnds, func(a, b *content.Entry) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Channel.Name, b.Channel.Name))
	})
	var texts []string
	for _, e := range deadEnds[:min(len(deadEnds), maxDeadEnds)] {
		texts = append(texts, fmt.Sprintf("%s %s it, but %s", e.Name, EdgeFrom(installed, e), WhyNoCandidate(e)))
	}
	if more := len(deadEnds) - maxDeadEnds; more > 0 {
		texts = append(texts, fmt.Sprintf("%d more cannot be reached either", more))
	}
	return fmt.Sprintf("%s; no other entry of %s replaces, skips or has a skipRange for it", strings.Join(texts, "; "), where)
}

// Edge is the kind of an upgrade edge. Its value is used as a verb in messages.
type Edge string

// These are the kinds of upgrade edges. The empty Edge means that there is none.
const (
	Replaces        Edge = "replaces"
	Skips           Edge = "skips"
	HasSkipRangeFor Edge = "has a skipRange for"
)

// EdgeFrom returns the upgrade edge from an installed operator to an entry. It returns "" if there is no such edge.
func EdgeFrom(installed, e *content.Entry) Edge {
	switch {
	case e.Replaces != "" && e.Replaces == installed.Name:
		return Replaces
	case slices.Contains(e.Skips, installed.Name):
		return Skips
	case e.Skip != nil && e.Skip.Contains(installed.Version):
		return HasSkipRangeFor
	}
	return ""
}

// WhyNoCandidate returns the reason why an entry is not a candidate, although it has an upgrade edge from the installed
// operator.
func WhyNoCandidate(e *content.Entry) string {
	ch := e.Channel
	switch {
	case ch.Malformed != "":
		return "the upgrade graph of channel " + ch.Name + " is broken"
	case e.Stranded:
		return fmt.Sprintf("the head of channel %s, %s, does not lead to %s", ch.Name, ch.Chain[0].Name, e.Name)
	case e.Position < 0:
		return fmt.Sprintf("%s skips %s", ch.SkippedBy(e), e.Name)
	}
	return e.Name + " is not newer"
}
