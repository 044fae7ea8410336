// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheStoryGoesAsTold(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, tell(&out))
	text := out.String()
	require.Less(t, strings.Count(text, "\n"), 80)
	var again bytes.Buffer
	require.NoError(t, tell(&again))
	require.Equal(t, text, again.String(), "the same story every time")
	at := 0
	for _, line := range []string{ // in this order
		"world        node b falls silent",
		"(NodeUnreachable)",
		"two Pods serve from node a",
		"the image registry.example.com/catalog:latest gets new content",
		"two Pods serve the new content",
		"installplan NoPlan -> NotYetReconciled",
		"you          approve InstallPlan",
		"phase none -> Pending -> InstallReady -> Installing -> Succeeded",
		"the catalog publishes cool-operator.v1.1.0",
		"phase Succeeded -> Replacing -> Deleting",
		"an hour later the controllers start again",
		"delete Fan cool/desk",
		"delete Deployment cool/cool-operator",
		"delete ClusterRole cool-operator.v1.1.0-",
		"nothing of cool-operator is left but its CRD",
	} {
		next := strings.Index(text[at:], line)
		require.GreaterOrEqual(t, next, 0, "after %q there is no %q in\n%s", text[:at], line, text)
		at += next
	}
}

func TestAStepThatDoesNotHappenIsAnError(t *testing.T) {
	require.NoError(t, expect(true, "x"))
	require.EqualError(t, expect(false, "%s is there", "it"), "expected that it is there")
	s := newStory(&bytes.Buffer{})
	require.Error(t, s.installed("nothing.v1"))
	require.Error(t, s.approveNothing())
}

// approveNothing approves where there is nothing to approve.
func (s *story) approveNothing() error {
	if err := s.create("Subscription"); err != nil {
		return err
	}
	return s.approve()
}
