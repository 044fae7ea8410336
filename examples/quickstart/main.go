// SPDX-License-Identifier: Apache-2.0

// Command quickstart tells the whole life of one operator in a simulated
// cluster: its catalog survives a node, it is installed, upgraded and deleted, and the deletion cleans up although the
// controllers were down. A step that does not go as told ends it with exit code 1.
//
//	go run ./examples/quickstart
package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/internal/terminal"
	"github.com/olmcore/olm/olmcore"
)

func main() {
	if err := tell(terminal.NewWriter(os.Stdout)); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

// tell runs the acts one after the other.
func tell(out io.Writer) error {
	s := newStory(out)
	for _, act := range []struct {
		title string
		play  func(*story) error
	}{
		{"A catalog survives its node, and follows its image", (*story).catalogSurvives},
		{"An operator is installed once its plan is approved", (*story).install},
		{"It is upgraded", (*story).upgrade},
		{"It is deleted while the controllers are down, and nothing stays behind", (*story).remove},
	} {
		fmt.Fprintf(out, "\n%s\n", act.title)
		if err := act.play(s); err != nil {
			return fmt.Errorf("%s: %w", strings.ToLower(act.title), err)
		}
	}
	return nil
}

func (s *story) catalogSurvives() error {
	s.say("you", "start a cluster with the nodes a and b")
	if err := s.act(s.cluster.Node("a").Create(nil), s.cluster.Node("b").Create(nil), s.create("CatalogSource")); err != nil {
		return err
	}
	if err := expect(nodes(s.serving()) == "a and b", "two Pods serve on two nodes, not on %q", nodes(s.serving())); err != nil {
		return err
	}
	s.say("world", "node b falls silent")
	if err := s.act(s.cluster.Node("b").Fail()); err != nil {
		return err
	}
	if err := s.wait(3 * time.Minute); err != nil {
		return err
	}
	if err := expect(nodes(s.serving()) == "a and a", "two Pods serve from node a, not from %q", nodes(s.serving())); err != nil {
		return err
	}
	s.say("world", "two Pods serve from node a; node b comes back")
	if err := s.act(s.cluster.Node("b").Heal()); err != nil {
		return err
	}
	return s.imageMoves()
}

// imageMoves: the tag gets new content, and a poll brings it in.
func (s *story) imageMoves() error {
	const image = "registry.example.com/catalog:latest"
	s.say("world", "the image %s gets new content", image)
	s.cluster.Image(image).SetDigest("sha256:" + strings.Repeat("2", 64))
	if err := s.wait(40 * time.Minute); err != nil {
		return err
	}
	serving := s.serving()
	for _, p := range serving {
		id := p.Status.ContainerStatuses[0].ImageID
		if err := expect(strings.HasSuffix(id, strings.Repeat("2", 64)), "%s serves the new content, not %s", p.Name, id); err != nil {
			return err
		}
	}
	s.say("world", "two Pods serve the new content from %s", nodes(serving))
	return expect(len(serving) == 2, "two Pods serve, not %d", len(serving))
}

func (s *story) install() error {
	if err := s.publish("1.0.0"); err != nil {
		return err
	}
	if err := s.act(s.create("OperatorGroup"), s.create("Subscription")); err != nil {
		return err
	}
	if err := s.approve(); err != nil {
		return err
	}
	if err := s.wait(time.Minute); err != nil {
		return err
	}
	if err := s.installed("cool-operator.v1.0.0"); err != nil {
		return err
	}
	return s.act(s.create("Fan"))
}

func (s *story) upgrade() error {
	if err := s.publish("1.1.0"); err != nil {
		return err
	}
	// What a watch on the catalog's content does in a real controller.
	if err := s.act(fake.Edit(s.cluster, "olm", "community", func(c *v1alpha1.CatalogSource) {
		c.Annotations = map[string]string{"example.com/content": "2"}
	})); err != nil {
		return err
	}
	if err := s.approve(); err != nil {
		return err
	}
	if err := s.wait(time.Minute); err != nil {
		return err
	}
	old := fake.Find[*v1alpha1.ClusterServiceVersion](s.cluster, "cool", "cool-operator.v1.0.0")
	if err := expect(old == nil, "the old version is gone"); err != nil {
		return err
	}
	return s.installed("cool-operator.v1.1.0")
}

func (s *story) remove() error {
	s.say("world", "the controllers go down")
	for _, key := range []olmcore.Key{olmcore.KeyOf(s.subscription()), {Group: v1alpha1.GroupName, Kind: "ClusterServiceVersion", Namespace: "cool", Name: "cool-operator.v1.1.0"}} {
		s.say("you", "delete %s", key)
		target := olmcore.Ref{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: key.Kind, Namespace: key.Namespace, Name: key.Name}
		if err := s.cluster.Delete(target); err != nil {
			return err
		}
	}
	if err := s.cluster.RunFor(time.Hour); err != nil {
		return err
	}
	held := fake.Find[*v1alpha1.ClusterServiceVersion](s.cluster, "cool", "cool-operator.v1.1.0")
	if err := expect(held != nil, "the finalizer holds the ClusterServiceVersion"); err != nil {
		return err
	}
	s.say("world", "an hour later the controllers start again, with no memory")
	s.olm.Forget()
	if err := s.wait(5 * time.Minute); err != nil {
		return err
	}
	left := s.leftovers()
	if err := expect(len(left) == 0, "nothing stays behind, not %s", strings.Join(left, ", ")); err != nil {
		return err
	}
	s.say("world", "nothing of cool-operator is left but its CRD; blade-operator has a Subscription of its own")
	return nil
}
