// Calls Sluicegate over the Redis protocol, with go-redis (`go get github.com/redis/go-redis/v9`).
//
// Not run by the tests: that command needs the module proxy, which the test machine cannot reach.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/redis/go-redis/v9"
)

// take takes a token from a bucket of three that refills at one per second. It waits after a denial.
func take(ctx context.Context, sluicegate *redis.Client, key string) (int64, error) {
	for {
		got, err := sluicegate.Do(ctx, "CL.THROTTLE", key, 2, 1, 1).Int64Slice()
		if err != nil {
			return 0, err
		}
		denied, left, retryAfter := got[0], got[2], got[3]
		if denied == 0 {
			return left, nil
		}
		if retryAfter < 0 {
			return 0, fmt.Errorf("this will never be allowed")
		}
		fmt.Printf("denied, waiting %d s\n", retryAfter)
		time.Sleep(time.Duration(retryAfter) * time.Second)
	}
}

func main() {
	address := os.Getenv("SLUICEGATE_RESP")
	if address == "" {
		address = "127.0.0.1:6380"
	}
	ctx := context.Background()
	sluicegate := redis.NewClient(&redis.Options{Addr: address})
	defer sluicegate.Close()
	for i := 0; i < 4; i++ {
		left, err := take(ctx, sluicegate, "client:go-redis")
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("allowed, %d left\n", left)
	}
}
